"""The HTTP API on one page: every address with what it takes; the full description is at /api/openapi.json."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from vidkin.web.site import CurrentSite, Page

__all__ = ["page"]

router = APIRouter()
page = Page(router, "API", "/api")


@router.get("/api", response_class=HTMLResponse, include_in_schema=False)
async def show_api(request: Request, site: CurrentSite) -> HTMLResponse:
    """The page."""
    document: dict[str, Any] = request.app.openapi()
    schemas = document["components"]["schemas"]
    rows = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            body = schemas.get(name, {}).get("properties", {})
            required = schemas.get(name, {}).get("required", [])
            rows.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": about["description"].replace("``", ""),
                    "words": [part["name"] for part in about.get("parameters", []) if part["in"] == "query"],
                    "body": [f"{field} (required)" if field in required else field for field in body],
                }
            )
    return site.page("api.html", request, {"rows": rows})
