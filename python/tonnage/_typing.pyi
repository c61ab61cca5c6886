"""Types that the stubs share. For type checkers alone: there is no such module at run time."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np

from tonnage._shape import IndexedSlices, TensorShape
from tonnage._tonnage import DType, Tensor, Variable

_T_co = TypeVar("_T_co", covariant=True)

class SupportsArray(Protocol):
    """NumPy's arrays and scalars, and what gives one of them."""

    def __array__(self) -> Any: ...

class Nested(Protocol[_T_co]):
    """Lists and tuples, nested to any depth. Text is none: what ``in`` takes of it is text, not any object."""

    def __len__(self) -> int: ...
    def __contains__(self, item: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> _T_co | Nested[_T_co]: ...
    def __iter__(self) -> Iterator[_T_co | Nested[_T_co]]: ...

Leaf: TypeAlias = Tensor | Variable | IndexedSlices | SupportsArray | bool | int | float
# What a tensor is made of wherever one is expected.
TensorLike: TypeAlias = Leaf | Nested[Leaf]
# What a tensor of strings is made of, or one of numbers.
TextLike: TypeAlias = Leaf | str | bytes | Nested[Leaf | str | bytes]
# A length of a shape: an int, or None where it is open. Programs compute with lengths, so that None is not spelled out.
Length: TypeAlias = Any
ShapeLike: TypeAlias = (
    TensorShape | Tensor | Variable | np.ndarray[Any, Any] | int | Sequence[int | Tensor | np.integer[Any] | None]
)
Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | np.ndarray[Any, Any]
DTypeLike: TypeAlias = DType | str | type[Any] | np.dtype[Any]
# A number of bytes, or text such as "512MiB".
Bytes: TypeAlias = int | float | str
Path: TypeAlias = str | PathLike[str]
# What Keras finds by a name, a configuration, or takes as a callable.
Named: TypeAlias = str | dict[str, Any] | Callable[..., Any]
Ints: TypeAlias = int | Sequence[int]
