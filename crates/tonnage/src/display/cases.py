"""Writes cases.txt, what the tests of `display` expect: `python cases.py > cases.txt`, with NumPy 2.

A case is a line `dtype shape list values` or `dtype shape count start step`, and then the text, each
line of it after a `|`. Booleans are written as Rust writes them.
"""

import numpy as np

TYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bool": np.bool_,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
}
nan, inf = np.nan, np.inf


def show(head, array):
    text = str(array).replace("True", "true").replace("False", "false")
    print(head)
    print("\n".join("|" + line for line in text.split("\n")))
    print()


def shape_text(shape):
    return "x".join(map(str, shape)) or "-"


def case(dtype, values, shape=None):
    array = np.array(values, dtype=TYPES[dtype])
    if shape is not None:
        array = array.reshape(shape)
    flat = [float(x) if dtype[0] == "f" else int(x) for x in array.ravel()]
    head = f"{dtype} {shape_text(array.shape)} list {' '.join(map(repr, flat))}"
    show(head.rstrip(), array)


def count(dtype, shape, start, step):
    n = int(np.prod(shape))
    array = np.array([start + i * step for i in range(n)]).astype(TYPES[dtype]).reshape(shape)
    show(f"{dtype} {shape_text(shape)} count {start} {step}", array)


for dtype in ["f64", "f32", "f16"]:
    case(dtype, [1.0, 2.0, 3.0])
    case(dtype, [0.1, 0.2, 0.3])
    case(dtype, [1.5, -2.25, 3.0])
    case(dtype, [0.0, -0.0])
    case(dtype, [1 / 3, 2 / 3])
    case(dtype, [0.0001, 0.05])
    case(dtype, [0.0001, 0.1, 0.01])
    case(dtype, [0.00009, 0.01])
    case(dtype, [1.0, 1000.0])
    case(dtype, [1.0, 1001.0])
    case(dtype, [nan, 1.0, 2.5])
    case(dtype, [inf, -inf, nan])
    case(dtype, [nan, nan])
    case(dtype, [inf, 1.0])
    case(dtype, [-inf, 1.0])
    case(dtype, [-inf, 0.00001, 12.5])
    case(dtype, [0.999999999, 0.5])
    case(dtype, [[1.0, -2.5], [1234.5, 0.0]])
    for x in [1.0, 0.1, -0.0, 1 / 3, 1e-4, 1e-5, 12345.678, nan, inf, -inf, 0.00012345]:
        case(dtype, x)

for dtype in ["f64", "f32"]:
    case(dtype, [1e8, 1.0])
    case(dtype, [99999999.0, 1234567.0])
    case(dtype, [1e-30, 1e30])
    case(dtype, [3.14159265358979, 2.71828182845905, -1.41421356237310])
    case(dtype, [123456.123456789, 654.25])
    case(dtype, [1.23456789012e-7, 1.0])
    case(dtype, [16777216.0, 16777217.0])
    case(dtype, [0.30000000000000004, 0.1])
    for x in [999999.0, 1e6, 16777217.0, 1e15, 1e16, 1.5e16, 123456789012345680.0, 1e-30, 0.30000000000000004]:
        case(dtype, x)

case("f64", [1e100, 1e5, -1e-5])
case("f64", [1e-310, 1.0])
case("f64", [1.7976931348623157e308, 5e-324])
case("f64", [0.123456785, 0.1234567849])
case("f64", [9.999999999e-5, 1.0])
case("f64", [99999999.99999999, 1e5])
case("f32", [1e-45, 1.0])
case("f32", [3.4028235e38, 1.1754944e-38])
case("f32", [173464.625, 0.1 * 2**20])
case("f32", [0.1, 1.2345678e-9])
case("f64", [1.00000000049e-5, 1.0])
case("f16", [0.0971, 3.785, 0.0003335])
case("f16", [65504.0, 1.0, 6e-8])
case("f16", [2.0**-14, 2.0**-14])
case("f16", [2.0**-6, 2.0**-8])
for x in [999.5, 1000.0, 65504.0, 2.0**-24]:
    case("f16", x)
case("f16", [0.3333, 999.5])

case("i32", [1, 20, -300])
case("i64", [-9223372036854775808, 9223372036854775807, 0])
case("u64", [18446744073709551615, 0])
case("u8", [[1, 20], [255, 0]])
case("i8", [-128, 127])
case("i16", -32768)
case("u16", [65535])
case("u32", [[[1]]])
case("i32", 7)
case("bool", [True, False])
case("bool", [True, True])
case("bool", [[True], [False]])
case("bool", True)
case("bool", False)

case("f32", [], (0,))
case("f32", [], (0, 3))
case("i64", [], (2, 0, 3))
case("bool", [], (0,))

count("i64", (2, 3, 4), 0, 1)
count("f32", (2, 2, 2, 2), -4, 0.5)
count("f64", (1, 1, 1), 0, 1)
count("i64", (30,), 0, 1)
count("i64", (40,), -1000000, 12345)
count("f32", (50,), 0, 0.25)
count("f64", (3, 30), 0, 0.125)
count("f64", (2, 2, 25), -1, 1.5)
count("i64", (1000,), 0, 1)
count("i64", (1001,), 0, 1)
count("f32", (1000000,), 0, 1)
count("f32", (5000,), 0, 0.25)
count("f64", (1001,), -500, 1)
count("f32", (100, 100), 0, 0.5)
count("i32", (100, 4), 0, 1)
count("i32", (300, 4), 0, 1)
count("i32", (4, 300), 0, 1)
count("u8", (6, 300), 0, 0)
count("i32", (7, 200), 0, 1)
count("f64", (20, 20, 20), 0, 1)
count("i64", (10, 11, 2, 12), -1320, 1)
count("f32", (1, 2000), 0, 8)
count("f32", (2000, 1), 0, 8)
count("bool", (1500,), 0, 1)
count("f16", (2000,), 0, 0.5)
count("f64", (1200,), 1e7, 1048576)

# Lines just as long as they may be, and one column longer.
for digits in range(1, 9):
    case("i64", [10 ** (digits - 1)] * 40)
    case("i64", [[[10 ** (digits - 1)] * 20]])
case("i64", [10**18] * 4)
case("f64", [0.5, 0.25, 0.125, 1.0] * 12)
