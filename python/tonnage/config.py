"""``tf.config``: devices, memory limits, how functions run."""

from . import _tonnage as _t

_eager = {"functions": False, "memory_growth": {}}


class PhysicalDevice:
    """A device of this machine."""

    def __init__(self, name, device_type):
        self.name, self.device_type = name, device_type

    def __eq__(self, other):
        return isinstance(other, PhysicalDevice) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"


class LogicalDevice(PhysicalDevice):
    """A device as programs see it."""


class LogicalDeviceConfiguration:
    """What a device may take: ``memory_limit`` is in MiB, as in TensorFlow, and holds on the CPU too."""

    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        self.memory_limit = memory_limit
        if experimental_priority is not None or experimental_device_ordinal is not None:
            from ._notices import once

            once("logical_device", "LogicalDeviceConfiguration: there is one CPU, so priorities and ordinals say nothing")


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def list_physical_devices(device_type=None):
    """The devices of this machine: one CPU."""
    return [_CPU] if device_type in (None, "CPU") else []


def list_logical_devices(device_type=None):
    """The devices as programs see them."""
    return [LogicalDevice("/device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


get_visible_devices = list_physical_devices


def set_visible_devices(devices, device_type=None):
    """There is one device, and it is visible."""
    if device_type in (None, "CPU") and not devices:
        raise ValueError("the CPU is the only device; it cannot be hidden")


def set_logical_device_configuration(device, logical_devices):
    """Limits what a device may hold. The limit is a contract: over it nothing is allocated."""
    if len(logical_devices) != 1:
        raise ValueError("one logical device for the CPU")
    limit = logical_devices[0].memory_limit
    _t.set_limit("cpu:0", None if limit is None else int(limit * 1024 * 1024))


def get_logical_device_configuration(device):
    """What was set."""
    limit = _t.memory_info("cpu:0")["limit"]
    return [LogicalDeviceConfiguration(None if limit is None else limit / (1024 * 1024))]


def run_functions_eagerly(run_eagerly):
    """Lets functions run op by op, or not."""
    _eager["functions"] = bool(run_eagerly)
    _t.run_functions_eagerly(bool(run_eagerly))


def functions_run_eagerly():
    """Whether functions run op by op."""
    return _eager["functions"]


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    @staticmethod
    def get_memory_info(device="CPU:0"):
        """What is held now and what the most was, in bytes: ``{"current": ..., "peak": ...}``."""
        info = _t.memory_info(_device(device))
        return {"current": info["current"], "peak": info["peak"]}

    @staticmethod
    def get_memory_usage(device="CPU:0"):
        """What is held now, in bytes."""
        return _t.memory_info(_device(device))["current"]

    @staticmethod
    def reset_memory_stats(device="CPU:0"):
        """Lets the peak start again from what is held now."""
        _t.reset_peak(_device(device))

    @staticmethod
    def set_memory_growth(device, enable):
        """Memory is obtained as it is needed, whatever is said here; only ``False`` is worth a word."""
        _eager["memory_growth"][device] = bool(enable)
        if not enable:
            from ._notices import once

            once("memory_growth", "set_memory_growth(False): memory is never obtained in advance")

    @staticmethod
    def get_memory_growth(device):
        """Whether memory is obtained as it is needed: always."""
        return True

    @staticmethod
    def get_device_details(device):
        """What is known of a device."""
        return {"device_name": "CPU"}

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    set_virtual_device_configuration = staticmethod(set_logical_device_configuration)
    VirtualDeviceConfiguration = LogicalDeviceConfiguration


class threading:
    """How many threads compute."""

    _asked = {"intra": 0, "inter": 0}

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads):
        """How many threads compute; before the first op that uses them. 0 is one for each core."""
        if num_threads and not _t.set_threads(int(num_threads)):
            raise RuntimeError("Intra op parallelism cannot be modified after initialization.")
        threading._asked["intra"] = int(num_threads)

    @staticmethod
    def get_intra_op_parallelism_threads():
        """What was set; 0 is one for each core."""
        return threading._asked["intra"]

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads):
        """Ops run one after the other, each on all threads: there is nothing to choose."""
        threading._asked["inter"] = int(num_threads)
        if num_threads > 1:
            from ._notices import once

            once("inter_op", "set_inter_op_parallelism_threads: ops run one after the other, each on all threads")

    @staticmethod
    def get_inter_op_parallelism_threads():
        """What was set."""
        return threading._asked["inter"]


def _device(device):
    name = str(device).lower().replace("/device:", "").replace("/physical_device:", "").lstrip("/")
    if name in ("cpu", "cpu:0"):
        return "cpu:0"
    if name.startswith("gpu") or name.startswith("tpu"):
        raise ValueError(f"there is no device {device}; use 'CPU:0'")
    raise ValueError(f"Failed parsing device name: {device!r}; use 'CPU:0'")


class device:
    """Where ops run: on the CPU. Asking for another device warns once."""

    def __init__(self, device_name):
        name = getattr(device_name, "name", device_name)
        if name is not None and "cpu" not in str(name).lower():
            from ._notices import once

            once("device", f"there is no device {name!r}: ops run on the CPU")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
