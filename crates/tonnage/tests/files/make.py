"""Files that NumPy makes, for `../files.rs` to read; small ones, checked in.

    python make.py    # NumPy 2, ml_dtypes (for bfloat16)

Every array counts up from 0 in steps of 1 (bool: odd or even), so the test knows what is in it.
"""

import os

import ml_dtypes
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def count(dtype, shape):
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


for dtype in "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1".split():
    np.save(f"{dtype}.npy", count(dtype, (2, 3)))
np.save("b1.npy", count("i4", (2, 3)) % 2 == 1)
np.save("bf16.npy", count(ml_dtypes.bfloat16, (2, 3)))
np.save("columns_first.npy", np.asfortranarray(count("f4", (4, 3, 2))))
np.save("big_endian.npy", count(">f4", (2, 3)))
np.save("big_endian_columns_first.npy", np.asfortranarray(count(">i8", (4, 3))))
np.save("scalar.npy", np.array(7.5))
np.save("empty.npy", np.zeros((3, 0, 2), "f4"))
np.save("one_axis.npy", count("i4", (5,)))
np.save("complex.npy", np.zeros(2, "c8"))
np.save("records.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
np.save("objects.npy", np.array([None, 1], dtype=object), allow_pickle=True)
for version in (2, 3):
    with open(f"version_{version}.npy", "wb") as file:
        np.lib.format.write_array(file, count("f4", (2, 3)), version=(version, 0))
np.savez("stored.npz", x=count("f4", (3, 4)), y=count("i8", (2,)))
np.savez_compressed("deflated.npz", x=count("f4", (30, 40)), y=np.asfortranarray(count("i8", (2, 3))))
np.savetxt("table.csv", count("f8", (3, 2)) / 4, delimiter=",", header="a,b", comments="")
