"""A stand-in of Open-Meteo's two services on 127.0.0.1, for tests.

    with WeatherServer() as server:
        tool = WeatherTool(forecast_url=server.url, geocoding_url=server.url)
        server.fail(503, times=2)        # the next two requests are answered with that status
    server.requests                      # (path, query) of every request
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PLACES: dict[str, dict[str, Any]] = {
    "杭州": {"name": "杭州", "admin1": "浙江", "country": "中国", "latitude": 30.29, "longitude": 120.16},
    "Paris": {"name": "Paris", "admin1": "Île-de-France", "country": "France", "latitude": 48.85, "longitude": 2.35},
}


class WeatherServer:
    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._failing: list[int] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                server.requests.append((url.path, query))
                status, body = server.answer(url.path, query)
                data = json.dumps(body, ensure_ascii=False).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def fail(self, status: int, times: int = 1) -> None:
        self._failing += [status] * times

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if self._failing:
            return self._failing.pop(0), {"error": True, "reason": "scripted"}
        if path == "/v1/search":
            found = PLACES.get(query.get("name", ""))
            return 200, {"generationtime_ms": 0.5, **({"results": [found]} if found else {})}
        if path == "/v1/forecast":
            return 200, _forecast(query)
        return 404, {"error": True, "reason": "Not Found"}

    def __enter__(self) -> WeatherServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _forecast(query: dict[str, str]) -> dict[str, Any]:
    """As the real service: just the fields that were asked for."""
    now = {"temperature_2m": 26.1, "relative_humidity_2m": 61, "apparent_temperature": 27.4, "weather_code": 0,
           "wind_speed_10m": 8.3}  # fmt: skip
    daily = {"weather_code": [0, 61, 95], "temperature_2m_max": [28.0, 24.5, 23.1], "temperature_2m_min": [19.2, 18.0, 17.4],
             "sunrise": ["2026-05-01T05:14"] * 3, "sunset": ["2026-05-01T18:37"] * 3,
             "precipitation_probability_max": [3, 80, 95]}  # fmt: skip
    wanted_now, wanted_daily = query["current"].split(","), query["daily"].split(",")
    return {
        "latitude": float(query["latitude"]),
        "longitude": float(query["longitude"]),
        "current": {"time": "2026-05-01T12:00", **{k: now[k] for k in wanted_now}},
        "daily": {"time": ["2026-05-01", "2026-05-02", "2026-05-03"], **{k: daily[k] for k in wanted_daily}},
    }
