"""A small in-memory server for the subset of S3 that an index requires, including conditional writes."""

from __future__ import annotations

import hashlib
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

__all__ = ["S3Server", "serve_s3"]

ACCESS_KEY, SECRET_KEY = "test-key", "test-secret"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'


@dataclass
class S3Server:
    """State of the server.

    Attributes:
        url: Address of the server.
        files: Content by "bucket/key".
        times: Time of the last change of each file.
        buckets: Names of the buckets.
        counts: Requests by kind: GET, HEAD, PUT, LIST, DELETE.
        sent: Bytes of content sent to clients.
        answers_to_lose: Number of successful PUTs to report as failed.
        on_request: Called with (kind, "bucket/key") before each request; may block.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    buckets: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    answers_to_lose: int = 0
    on_request: Callable[[str, str], None] = lambda what, name: None
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def environment(self) -> dict[str, str]:
        """Environment variables for clients of the server."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
        }

    def reset_counts(self) -> None:
        """Reset the request counts."""
        self.counts.clear()
        self.sent = 0

    def put(self, name: str, content: bytes, if_match: str | None, if_none_match: str | None) -> int:
        """Write a file if the conditions of the headers hold; return the HTTP status."""
        with self.lock:
            before = self.files.get(name)
            if if_none_match == "*" and before is not None:
                return 412
            if if_match is not None:
                if before is None:
                    return 404
                if if_match != _tag(before):
                    return 412
            self.files[name], self.times[name] = content, time.time()
            return 200


@contextmanager
def serve_s3(*buckets: str) -> Iterator[S3Server]:
    """Run the server in a thread, with these buckets."""
    state = S3Server(buckets=set(buckets))

    class Handler(_Handler):
        server_state = state

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # killed clients break their connections

    with Server(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: S3Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        name, query = self._begin("LIST" if self._is_listing() else "GET")
        if name is None:
            return
        if self._is_listing():
            self._list(name, query)
            return
        self._send_file(name)

    def do_HEAD(self) -> None:
        name, _ = self._begin("HEAD")
        if name is not None:
            self._send_file(name)

    def do_PUT(self) -> None:
        body = self._body()
        name, query = self._begin("PUT")
        if name is None:
            return
        if "partNumber" in query:
            self.server_state.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._answer(200, headers={"ETag": _tag(body)})
            return
        self._put(name, body)

    def do_POST(self) -> None:
        body = self._body()
        name, query = self._begin("DELETE" if "delete" in urllib.parse.urlsplit(self.path).query else "PUT")
        if name is None:
            return
        state = self.server_state
        if "delete" in query:
            namespace = "{http://s3.amazonaws.com/doc/2006-03-01/}"
            keys = [key.text for key in ET.fromstring(body).iter() if key.tag in ("Key", f"{namespace}Key")]
            for key in keys:
                state.files.pop(f"{name}/{key}", None)
            rows = "".join(f"<Deleted><Key>{escape(key or '')}</Key></Deleted>" for key in keys)
            self._answer(200, f"{_XML}<DeleteResult>{rows}</DeleteResult>")
        elif "uploads" in query:
            upload = f"{len(state.uploads)}"
            state.uploads[upload] = {}
            text = f"<UploadId>{upload}</UploadId>"
            self._answer(200, f"{_XML}<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>")
        else:
            parts = state.uploads.pop(query["uploadId"])
            self._put(name, b"".join(parts[number] for number in sorted(parts)))

    def do_DELETE(self) -> None:
        name, _ = self._begin("DELETE")
        if name is not None:
            self.server_state.files.pop(name, None)
            self._answer(204)

    def _is_listing(self) -> bool:
        return "list-type" in urllib.parse.urlsplit(self.path).query

    def _begin(self, what: str) -> tuple[str | None, dict[str, str]]:
        """Parse the requested name and the query; None if the request was refused."""
        state = self.server_state
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        name = urllib.parse.unquote(address.path).strip("/")
        state.counts[what] += 1
        state.on_request(what, name)
        if f"Credential={ACCESS_KEY}/" not in self.headers.get("Authorization", ""):
            self._refuse(403, "InvalidAccessKeyId")
            return None, query
        if name.partition("/")[0] not in state.buckets:
            self._refuse(404, "NoSuchBucket")
            return None, query
        return name, query

    def _put(self, name: str, body: bytes) -> None:
        status = self.server_state.put(name, body, self.headers.get("If-Match"), self.headers.get("If-None-Match"))
        if self.server_state.answers_to_lose:
            self.server_state.answers_to_lose -= 1
            self._refuse(500, "InternalError")
        elif status == 200:
            result = f"<CompleteMultipartUploadResult><ETag>{escape(_tag(body))}</ETag>"
            self._answer(200, f"{_XML}{result}</CompleteMultipartUploadResult>", headers={"ETag": _tag(body)})
        else:
            self._refuse(status, "PreconditionFailed" if status == 412 else "NoSuchKey")

    def _send_file(self, name: str) -> None:
        state = self.server_state
        with state.lock:
            content, modified = state.files.get(name), state.times.get(name, 0.0)
        if content is None:
            self._refuse(404, "NoSuchKey")
            return
        headers = {
            "ETag": _tag(content),
            "Last-Modified": formatdate(modified, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        status, part = 200, content
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(len(content) - int(last), 0)
            end = min(int(last) + 1 if first and last else len(content), len(content))
            status, part = 206, content[start:end]
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        state.sent += len(part) if self.command == "GET" else 0
        self._answer(status, part, headers=headers)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        state = self.server_state
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        most = int(query.get("max-keys", "1000"))
        with state.lock:
            names = sorted(name.removeprefix(f"{bucket}/") for name in state.files if name.startswith(f"{bucket}/"))
            names = [name for name in names if name.startswith(prefix) and name > after]
            folders = {}
            if delimiter:
                inside = {name: name.removeprefix(prefix).partition(delimiter) for name in names}
                folders = dict.fromkeys(f"{prefix}{head}/" for head, found, _ in inside.values() if found)
                names = [name for name in names if not inside[name][1]]
            more, names = len(names) > most, names[:most]
            rows = [
                f"<Contents><Key>{escape(name)}</Key><Size>{len(state.files[f'{bucket}/{name}'])}</Size>"
                f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(state.times[f'{bucket}/{name}']))}"
                f"</LastModified><ETag>{escape(_tag(state.files[f'{bucket}/{name}']))}</ETag></Contents>"
                for name in names
            ]
        rows += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        token = f"<NextContinuationToken>{escape(names[-1])}</NextContinuationToken>" if more else ""
        self._answer(
            200,
            f"{_XML}<ListBucketResult><Name>{bucket}</Name><KeyCount>{len(rows)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(rows)}</ListBucketResult>",
        )

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"{_XML}<Error><Code>{code}</Code><Message>{code}</Message></Error>")

    def _answer(self, status: int, content: str | bytes = b"", headers: dict[str, str] | None = None) -> None:
        body = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
