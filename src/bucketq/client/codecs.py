"""A queue's payloads: any JSON value or bytes, or values of one type."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw

from bucketq.client.payload import check_depth, decode_json, encode_json, encoded, too_large
from bucketq.errors import PayloadInvalid, SettingInvalid
from bucketq.settings import shown

T = TypeVar("T")

_ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError)
_bytes_decoder = msgspec.json.Decoder(bytes)


class Codec(Protocol[T]):
    """Encodes payloads and decodes them again."""

    def encode(self, value: T) -> tuple[Raw, bool]:
        """JSON text, and whether it stands for bytes. Raises `PayloadInvalid` or `PayloadTooLarge`."""
        ...

    def decode(self, payload: Raw, binary: bool) -> T:
        """Raises `PayloadInvalid` if it is not of the queue's type."""
        ...


def codec_for(type: Any, bytes_max: int) -> Codec[Any]:
    """The codec of a queue's type (None or Any: plain JSON values and bytes).

    Raises `SettingInvalid` if payloads can't be of that type.
    """
    if type is None or type is Any:
        return PlainCodec(bytes_max)
    if type is bytes:
        return BytesCodec(bytes_max)
    if hasattr(type, "model_validate_json") and hasattr(type, "model_dump_json"):
        return PydanticCodec(type, bytes_max)
    return TypedCodec(type, bytes_max)


class PlainCodec:
    """Any JSON value, or bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    def encode(self, value: Any) -> tuple[Raw, bool]:
        if type(value) is bytes:
            return _encoded_bytes(value, self._bytes_max), True
        return encoded("payload", value, self._bytes_max), False

    def decode(self, payload: Raw, binary: bool) -> Any:
        return _bytes_decoder.decode(payload) if binary else decode_json(payload)


class BytesCodec:
    """Bytes and nothing else."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    def encode(self, value: bytes) -> tuple[Raw, bool]:
        if type(value) is not bytes:
            raise PayloadInvalid(f"the payload must be bytes; got {shown(value)}")
        return _encoded_bytes(value, self._bytes_max), True

    def decode(self, payload: Raw, binary: bool) -> bytes:
        if not binary:
            raise PayloadInvalid("the payload is a JSON value, not bytes")
        return _bytes_decoder.decode(payload)


def _encoded_bytes(value: bytes, bytes_max: int) -> Raw:
    if len(value) > bytes_max:
        raise too_large("payload", len(value), bytes_max)
    return Raw(encode_json(value))


class _OneType(Generic[T]):
    """Values of one type: what is pushed must come back as an equal value of it."""

    def __init__(self, type: Any, bytes_max: int) -> None:
        self._name = getattr(type, "__name__", None) or str(type)
        self._bytes_max = bytes_max

    def encode(self, value: T) -> tuple[Raw, bool]:
        try:
            text = self._dump(value)
        except _ENCODE_ERRORS as error:
            raise self._invalid(error) from error
        if len(text) > self._bytes_max:
            raise too_large("payload", len(text), self._bytes_max)
        check_depth("payload", text)
        back = self.decode(Raw(text), False)
        if not self._is_same(value, back):
            raise self._invalid(
                f"{shown(value)} is a {type(value).__name__}"
                if type(value) is not type(back)
                else f"{shown(value)} would come back as {shown(back)}"
            )
        return Raw(text), False

    def decode(self, payload: Raw, binary: bool) -> T:
        if binary:
            raise self._invalid("it is bytes")
        try:
            return self._load(payload)
        except (ValueError, RecursionError) as error:
            raise self._invalid(error) from error

    def _invalid(self, why: object) -> PayloadInvalid:
        return PayloadInvalid(f"the payload is no valid {self._name}: {why}")

    def _dump(self, value: T) -> bytes:
        raise NotImplementedError

    def _load(self, payload: Raw) -> T:
        raise NotImplementedError

    def _is_same(self, value: T, back: T) -> bool:
        return bool(back == value)


class TypedCodec(_OneType[T]):
    """What msgspec knows: Structs, dataclasses, TypedDicts, attrs classes, builtins and generics of them."""

    def __init__(self, type: Any, bytes_max: int) -> None:
        super().__init__(type, bytes_max)
        try:
            known = msgspec.inspect.type_info(type)
            self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(type)
        except Exception as error:
            raise SettingInvalid(f"payloads can't be of type {shown(type)}: {error}") from error
        if isinstance(known, msgspec.inspect.CustomType):
            raise SettingInvalid(
                f"payloads can't be of type {self._name}: use a msgspec Struct, a dataclass, a pydantic model, a "
                "TypedDict or a builtin"
            )

    def _dump(self, value: T) -> bytes:
        return encode_json(value)

    def _load(self, payload: Raw) -> T:
        return self._decoder.decode(payload)

    def _is_same(self, value: T, back: T) -> bool:
        if back == value:
            return True
        # of a type that does not compare (eq=False) even two equal values differ
        again = self._decoder.decode(encode_json(back))
        plain = msgspec.to_builtins
        return bool(type(back) is type(value) and back != again and plain(back) == plain(value))


class PydanticCodec(_OneType[T]):
    """A pydantic model. Pydantic is never imported here: whoever has such a type has it."""

    def __init__(self, type: Any, bytes_max: int) -> None:
        super().__init__(type, bytes_max)
        self._model = type

    def _dump(self, value: Any) -> bytes:
        if not isinstance(value, self._model):
            raise TypeError(f"{shown(value)} is a {type(value).__name__}")
        text: str = value.model_dump_json(by_alias=True, round_trip=True, warnings="error")
        return text.encode()

    def _load(self, payload: Raw) -> T:
        model: T = self._model.model_validate_json(bytes(payload))
        return model
