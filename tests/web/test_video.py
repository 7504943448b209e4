"""The page of one video."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.web.conftest import number_of


def test_a_video_is_shown_with_what_is_known_of_it(client: TestClient) -> None:
    number = number_of(client, "coffee.mp4")
    page = client.get(f"/videos/{number}").text
    assert "0:12.0, 192x128, h264" in page
    assert f"/videos/{number}&#34;" in page  # what the player gets
    broken = client.get(f"/videos/{number_of(client, 'broken.mp4')}").text
    assert '<p class="error">' in broken
    assert "<video" not in broken
    assert client.get("/videos/999999").status_code == 404
