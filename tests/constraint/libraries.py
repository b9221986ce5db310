#!/usr/bin/env python3
"""Prints schemas as pydantic makes them, a line {"name": ..., "schema": ...} each.

usage: tests/constraint/libraries.py    with pydantic 2"""

import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import typing
import uuid

import pydantic
from pydantic import BaseModel, Field


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: typing.Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: typing.Literal["dog"]
    name: str = Field(min_length=1, max_length=20)


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Closed(BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    a: str


class Open(BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: str


TYPES = {
    "str": str, "int": int, "float": float, "bool": bool, "none": None, "any": typing.Any, "bytes": bytes,
    "optional": typing.Optional[str], "union": typing.Union[int, str, list[float]], "literal": typing.Literal["a", 1],
    "enum": Color, "int_enum": Level, "list": list[int], "tuple": tuple[int, str], "tuple_any": tuple[int, ...],
    "set_enum": set[Color], "dict": dict[str, int], "dict_enum": dict[Color, int], "dict_int": dict[int, str],
    "bounded": typing.Annotated[float, Field(gt=0.5, le=99.9)],
    "multiple": typing.Annotated[int, Field(multiple_of=5)],
    "pattern": typing.Annotated[str, Field(pattern=r"^[a-z]{2,4}\d?$", max_length=4)],
    "list_bounds": typing.Annotated[list[str], Field(min_length=1, max_length=3)],
    "dict_bounds": typing.Annotated[dict[str, int], Field(min_length=1, max_length=3)],
    "decimal": decimal.Decimal, "datetime": datetime.datetime, "date": datetime.date, "time": datetime.time,
    "timedelta": datetime.timedelta, "uuid": uuid.UUID, "path": pathlib.Path, "ip4": ipaddress.IPv4Address,
    "ip6": ipaddress.IPv6Address, "network": ipaddress.IPv4Network, "url": pydantic.AnyUrl,
    "http_url": pydantic.HttpUrl, "secret": pydantic.SecretStr, "json": pydantic.Json, "tree": Tree,
    "discriminated": typing.Annotated[typing.Union[Cat, Dog], Field(discriminator="kind")],
    "plain_union": typing.Union[Cat, Dog], "closed": Closed, "open": Open, "positive": pydantic.PositiveInt,
    "base64": pydantic.Base64Str,
}

for name, kind in TYPES.items():
    for mode in ("validation", "serialization"):
        schema = pydantic.TypeAdapter(kind).json_schema(mode=mode)
        print(json.dumps({"name": f"pydantic/{mode}/{name}", "schema": schema}))
