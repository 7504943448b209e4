"""Errors of object storage: messages of client libraries, turned into a cause and a remedy in one line."""

from __future__ import annotations

__all__ = ["describe_refusal"]

_CREDENTIALS = (
    "set the credentials in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION) for s3://, "
    "GOOGLE_APPLICATION_CREDENTIALS for gs://"
)
_UNREACHABLE = "the storage cannot be reached; check the network and AWS_ENDPOINT_URL"
# Messages of obstore and Lance, which quote the server or the network; the first that occurs decides.
_REFUSALS = (
    ("nosuchbucket", "there is no such bucket; create it or correct the address"),
    ("bucket does not exist", "there is no such bucket; create it or correct the address"),
    ("invalidaccesskeyid", f"the access key is unknown; {_CREDENTIALS}"),
    ("signaturedoesnotmatch", f"the secret key is wrong; {_CREDENTIALS}"),
    ("expiredtoken", f"the credentials have expired; {_CREDENTIALS}"),
    ("169.254.169.254", f"no credentials were found; {_CREDENTIALS}"),
    ("metadata.google.internal", f"no credentials were found; {_CREDENTIALS}"),
    ("403 forbidden", f"access denied; check the permissions of this key, or {_CREDENTIALS}"),
    ("401 unauthorized", f"access denied; {_CREDENTIALS}"),
    ("permissiondenied", f"access denied; {_CREDENTIALS}"),
    ("unauthenticated", f"access denied; {_CREDENTIALS}"),
    ("error sending request", _UNREACHABLE),
    ("error decoding response body", _UNREACHABLE),
    ("operation timed out", _UNREACHABLE),
    ("slowdown", "the storage asks for fewer requests; try again later"),
    ("503 service unavailable", "the storage is overloaded; try again later"),
    ("500 internal server error", "the storage has an internal error; try again later"),
    ("quotaexceeded", "the quota of the bucket is used up"),
)


def describe_refusal(text: str) -> str | None:
    """The cause and what to do about it; None if the text is not about object storage.

    Args:
        text: Message of a library.
    """
    lowered = text.lower()
    return next((cause for sign, cause in _REFUSALS if sign in lowered), None)
