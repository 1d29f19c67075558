"""The weather from Open-Meteo: now and the next days, in words and numbers. No key is needed.

Numbers are metric. Weather codes are those of the WMO's table 4677, as Open-Meteo lists them in its docs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field

from lc_memory.language import Language, language_of

from .calls import TransientToolError

if TYPE_CHECKING:
    import httpx

FORECAST = "https://api.open-meteo.com"
GEOCODING = "https://geocoding-api.open-meteo.com"

WORDS: Mapping[int, tuple[str, str]] = {
    0: ("晴", "clear sky"),
    1: ("大部晴朗", "mainly clear"),
    2: ("局部多云", "partly cloudy"),
    3: ("阴", "overcast"),
    45: ("雾", "fog"),
    48: ("雾凇", "depositing rime fog"),
    51: ("小毛毛雨", "light drizzle"),
    53: ("毛毛雨", "moderate drizzle"),
    55: ("大毛毛雨", "dense drizzle"),
    56: ("轻度冻毛毛雨", "light freezing drizzle"),
    57: ("冻毛毛雨", "dense freezing drizzle"),
    61: ("小雨", "slight rain"),
    63: ("中雨", "moderate rain"),
    65: ("大雨", "heavy rain"),
    66: ("轻度冻雨", "light freezing rain"),
    67: ("冻雨", "heavy freezing rain"),
    71: ("小雪", "slight snowfall"),
    73: ("中雪", "moderate snowfall"),
    75: ("大雪", "heavy snowfall"),
    77: ("雪粒", "snow grains"),
    80: ("小阵雨", "slight rain showers"),
    81: ("阵雨", "moderate rain showers"),
    82: ("强阵雨", "violent rain showers"),
    85: ("小阵雪", "slight snow showers"),
    86: ("大阵雪", "heavy snow showers"),
    95: ("雷暴", "thunderstorm"),
    96: ("雷暴伴小冰雹", "thunderstorm with slight hail"),
    99: ("雷暴伴大冰雹", "thunderstorm with heavy hail"),
}

_NOW = {
    "temperature_c": "temperature_2m",
    "feels_like_c": "apparent_temperature",
    "humidity_percent": "relative_humidity_2m",
    "wind_kmh": "wind_speed_10m",
}
_DAY = {
    "date": "time",
    "min_c": "temperature_2m_min",
    "max_c": "temperature_2m_max",
    "rain_percent": "precipitation_probability_max",
    "sunrise": "sunrise",
    "sunset": "sunset",
}


def in_words(code: Any, language: Language = "zh") -> str:
    """A weather code in words; the code itself where the table has no such."""
    try:
        return WORDS[int(code)][0 if language == "zh" else 1]
    except (KeyError, TypeError, ValueError):
        return f"未知天气（{code}）" if language == "zh" else f"unknown ({code})"


class _Arguments(BaseModel):
    place: Annotated[str | None, Field(description="a city or place, 地名, e.g. 杭州 or Paris")] = None
    latitude: Annotated[float | None, Field(ge=-90, le=90, description="纬度, instead of a place")] = None
    longitude: Annotated[float | None, Field(ge=-180, le=180, description="经度, with latitude")] = None


class WeatherTool(BaseTool):
    """``get_weather(place)`` or ``get_weather(latitude, longitude)`` as a LangChain tool.

    Gives JSON text: ``place``, ``now`` and ``days`` (three, today first), with units in the names. Words are
    in the language of the place's name; of coordinates, in ``language``. ToolException where there is no
    such place; TransientToolError, or httpx's own error, where the service cannot be had.
    """

    name: str = "get_weather"
    description: str = (
        "Weather now and in the next two days, by the name of a place or by latitude and longitude. "
        "查天气：温度、湿度、风、降雨概率、日出日落。"
    )
    args_schema: type[BaseModel] = _Arguments
    forecast_url: str = FORECAST
    geocoding_url: str = GEOCODING
    timeout: float = 10.0
    """Seconds for each of at most two requests."""
    language: Language = "zh"

    def _run(
        self,
        place: str | None = None,
        latitude: float | None = None,
        longitude: float | None = None,
        **_: Any,
    ) -> str:
        import httpx

        with httpx.Client(timeout=self.timeout) as client:
            language, found = self._asked(place, latitude, longitude)
            if found is None:
                found = _place(_body(client.get(**self._search(place, language))), place)
            forecast = _body(client.get(**self._forecast(found)))
        return _told(found, forecast, language)

    async def _arun(
        self,
        place: str | None = None,
        latitude: float | None = None,
        longitude: float | None = None,
        **_: Any,
    ) -> str:
        import httpx

        async with httpx.AsyncClient(timeout=self.timeout) as client:
            language, found = self._asked(place, latitude, longitude)
            if found is None:
                found = _place(_body(await client.get(**self._search(place, language))), place)
            forecast = _body(await client.get(**self._forecast(found)))
        return _told(found, forecast, language)

    def _asked(
        self, place: str | None, latitude: float | None, longitude: float | None
    ) -> tuple[Language, dict[str, Any] | None]:
        language = language_of(place) if place else self.language
        if latitude is not None and longitude is not None:
            name = place or f"{latitude:g}, {longitude:g}"
            return language, {"name": name, "latitude": latitude, "longitude": longitude}
        if not place or not place.strip():
            raise ToolException("name a place, or give latitude and longitude")
        return language, None

    def _search(self, place: str | None, language: Language) -> dict[str, Any]:
        wanted = {"name": (place or "").strip(), "count": 1, "language": language, "format": "json"}
        return {"url": f"{self.geocoding_url.rstrip('/')}/v1/search", "params": wanted}

    def _forecast(self, found: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {
            "latitude": found["latitude"],
            "longitude": found["longitude"],
            "current": ",".join(["weather_code", *_NOW.values()]),
            "daily": ",".join(["weather_code", *(v for v in _DAY.values() if v != "time")]),
            "timezone": "auto",
            "forecast_days": 3,
        }
        return {"url": f"{self.forecast_url.rstrip('/')}/v1/forecast", "params": wanted}


def _body(response: httpx.Response) -> dict[str, Any]:
    said = f"{response.status_code}: {response.text[:200]}"
    if response.status_code == 429 or response.status_code >= 500:
        raise TransientToolError(f"the weather service answers {said}")
    if response.status_code != 200:
        raise ToolException(f"the weather service refuses with {said}")
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise TransientToolError(f"the weather service gives no JSON: {response.text[:100]!r}")
    return body


def _place(body: Mapping[str, Any], place: str | None) -> dict[str, Any]:
    results = body.get("results")
    if not isinstance(results, list) or not results:
        raise ToolException(f"no place called {place!r} is known; another spelling or coordinates may help")
    first = results[0]
    parts = [first.get("name"), first.get("admin1"), first.get("country")]
    name = ", ".join(dict.fromkeys(str(part) for part in parts if part))
    return {"name": name, "latitude": first["latitude"], "longitude": first["longitude"]}


def _told(found: Mapping[str, Any], body: Mapping[str, Any], language: Language) -> str:
    now, daily = body.get("current") or {}, body.get("daily") or {}
    days = []
    for i, _ in enumerate(daily.get("time") or ()):
        day = {key: values[i] for key, name in _DAY.items() if len(values := daily.get(name) or ()) > i}
        codes = daily.get("weather_code") or ()
        days.append({"weather": in_words(codes[i], language) if len(codes) > i else None, **day})
    told = {
        "place": found["name"],
        "now": {
            "weather": in_words(now.get("weather_code"), language),
            **{key: now[name] for key, name in _NOW.items() if name in now},
        },
        "days": days,
    }
    return json.dumps(told, ensure_ascii=False)


__all__ = ["FORECAST", "GEOCODING", "WORDS", "WeatherTool", "in_words"]
