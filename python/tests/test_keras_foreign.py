"""Files of Keras and its kin are called what they are: they cannot be loaded yet, and the error says so."""

import json
import zipfile

import pytest

import tonnage as tf

K, L = tf.keras, tf.keras.layers
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(2048)


def keras3(path):
    """What ``model.save("m.keras")`` of Keras 3 writes."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", json.dumps({"keras_version": "3.5.0", "date_saved": "2024-01-01"}))
        file.writestr("config.json", json.dumps({"module": "keras", "class_name": "Sequential"}))
        file.writestr("model.weights.h5", HDF5)


def hdf5(path):
    """What older versions write, and ``save_weights``."""
    path.write_bytes(HDF5)


def checkpoint(path):
    """What TensorFlow writes for a path: files beside it."""
    path.with_name(path.name + ".index").write_bytes(b"x")
    path.with_name(path.name + ".data-00000-of-00001").write_bytes(b"x")


def saved_model(path):
    """A folder."""
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"x")


FILES = [("m.keras", keras3, "file of Keras 3"), ("m.h5", hdf5, "HDF5 file"), ("m.weights.h5", hdf5, "HDF5 file"), ("m.hdf5", hdf5, "HDF5 file"),
         ("m.keras", hdf5, "HDF5 file"), ("ckpt", checkpoint, "checkpoint of TensorFlow"), ("m", saved_model, "SavedModel of TensorFlow")]


@pytest.mark.parametrize("name, write, what", FILES, ids=lambda v: getattr(v, "__name__", v))
def test_a_file_that_cannot_be_loaded_says_what_it_is(name, write, what, tmp_path):
    path = tmp_path / name
    write(path)
    model = K.Sequential([L.Input((3,)), L.Dense(2)])
    before = model.get_weights()
    loads = [K.models.load_model, K.saving.load_model, model.load_weights, lambda p: model.load_weights(str(p)),
             lambda p: model.load_weights(p, skip_mismatch=True)]
    for load in loads:
        with pytest.raises(ValueError) as caught:
            load(path)
        text = str(caught.value)
        assert what in text and str(path) in text and "not supported yet" in text, text
    assert all((a == b).all() for a, b in zip(before, model.get_weights()))


def test_a_file_of_ours_loads_under_such_names(tmp_path):
    model = K.Sequential([L.Input((3,)), L.Dense(2)])
    model.save(tmp_path / "m.keras")
    again = K.models.load_model(tmp_path / "m.keras")
    assert all((a == b).all() for a, b in zip(model.get_weights(), again.get_weights()))
