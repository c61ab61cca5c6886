"""``tf.config``: devices, memory limits, how functions run."""

from . import _tonnage as _t
from ._notices import once as _once
from .errors import InvalidArgumentError as _InvalidArgumentError

_eager = {"functions": False}

# Whether the program asked for results that are the same in every run. They are anyway.
_determinism = {"asked": False}

# The short names of the devices that programs may use, as ``set_visible_devices`` said; nothing where it never did.
_visible = {"names": None}

# As in TensorFlow; ``set_soft_device_placement(False)`` ends it.
_t.set_soft_placement(True)


class PhysicalDevice:
    """A device of this machine."""

    def __init__(self, name, device_type):
        self.name, self.device_type = name, device_type

    def __eq__(self, other):
        return isinstance(other, PhysicalDevice) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"{type(self).__name__}(name='{self.name}', device_type='{self.device_type}')"


class LogicalDevice(PhysicalDevice):
    """A device as programs see it."""


class LogicalDeviceConfiguration:
    """What a device may take: ``memory_limit`` is in MiB, as in TensorFlow, and holds on the CPU too."""

    def __init__(self, memory_limit=None, experimental_priority=None, experimental_device_ordinal=None):
        self.memory_limit = memory_limit
        if experimental_priority is not None or experimental_device_ordinal is not None:
            _once("logical_device", "LogicalDeviceConfiguration: a device is one, so priorities and ordinals say nothing")


def _parsed(device):
    """A device by any name, or one of ``list_physical_devices``: its short name, its kind, its number."""
    name = getattr(device, "name", device)
    if not isinstance(name, str):
        raise _InvalidArgumentError(None, None, f"Expecting a string device name. Got {type(name)}({name!r}); use one like 'CPU:0'")
    return _t.parse_device(name)


def _device(device):
    """The short name of a device that programs may use."""
    name, _, _ = _parsed(device)
    visible = _visible["names"]
    if visible is not None and name in _t.devices() and name not in visible:
        raise _InvalidArgumentError(None, None, f"the device {name} is hidden: tf.config.set_visible_devices left it out")
    return name


def _listed(names, device_type, make):
    found = [_t.parse_device(name) for name in names]
    return [make(kind, number) for _, kind, number in found if device_type in (None, kind)]


def _physical(kind, number):
    return PhysicalDevice(f"/physical_device:{kind}:{number}", kind)


def list_physical_devices(device_type=None):
    """The devices of this machine. The one for tests, ``sim:0``, is there where it is asked for, and is not listed.

    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return _listed(_t.devices(), device_type, _physical)


def list_logical_devices(device_type=None):
    """The devices as programs see them: those that are visible."""
    return _listed(_names(), device_type, lambda kind, number: LogicalDevice(f"/device:{kind}:{number}", kind))


def _names():
    return _t.devices() if _visible["names"] is None else _visible["names"]


def get_visible_devices(device_type=None):
    """The devices that programs may use."""
    return _listed(_names(), device_type, _physical)


def set_visible_devices(devices, device_type=None):
    """Lets programs use these devices alone, or of one type these alone. The CPU is always there."""
    devices = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    names = []
    for device in devices:
        if device not in list_physical_devices(device_type):
            raise ValueError(f"Unrecognized device: {device!r}; there are {list_physical_devices(device_type)}")
        names.append(_parsed(device)[0])
    if device_type is not None:  # what was said of others holds on
        names += [_parsed(other)[0] for other in get_visible_devices() if other.device_type != device_type]
    if "cpu:0" not in names:
        raise ValueError("the CPU cannot be hidden: host memory is there, and programs start on it")
    _visible["names"] = [name for name in _t.devices() if name in names]


def set_soft_device_placement(enabled):
    """Whether inputs that lie on different devices are copied to one, that of the first which is not on the CPU, with a warning once
    a line, and whether ``tf.device`` of a device that is not there warns and takes the CPU. Otherwise both are errors."""
    _t.set_soft_placement(bool(enabled))


def get_soft_device_placement():
    """Whether inputs that lie on different devices are copied to one."""
    return _t.soft_placement()


def set_logical_device_configuration(device, logical_devices):
    """Limits what a device may hold. The limit is a contract: over it nothing is allocated."""
    if len(logical_devices) != 1:
        raise ValueError("one logical device for each physical one")
    limit = logical_devices[0].memory_limit
    _t.set_limit(_device(device), None if limit is None else int(limit * 1024 * 1024))


def get_logical_device_configuration(device):
    """What was set."""
    limit = _t.memory_info(_device(device))["limit"]
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
        """Memory is obtained as it is needed, whatever is said here."""
        _once("memory_growth", f"set_memory_growth({_device(device)!r}, {bool(enable)}) has no effect here: memory is obtained as it is "
                               "needed")

    @staticmethod
    def get_memory_growth(device):
        """Whether memory is obtained as it is needed: always."""
        return bool(_device(device))

    @staticmethod
    def enable_op_determinism():
        """Results are the same in every run, whatever is said here; Keras asks whether it was."""
        _determinism["asked"] = True

    @staticmethod
    def get_device_details(device):
        """What is known of a device."""
        return {"device_name": _parsed(device)[1]}

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
            _once("inter_op", "set_inter_op_parallelism_threads: ops run one after the other, each on all threads")

    @staticmethod
    def get_inter_op_parallelism_threads():
        """What was set."""
        return threading._asked["inter"]


class device:
    """Where new tensors and variables of this thread go, inside of ``with``. Ops run where their inputs lie; ``None`` is as without a
    scope. A name may be short (``"cpu:0"``, ``"sim:0"``) or TensorFlow's (``"/GPU:0"``), or a device of ``tf.config``.

    >>> with tf.device("sim:0"):  # the device for tests
    ...     x = tf.constant([1.0, 2.0])
    >>> (x + 1.0).device
    '/job:localhost/replica:0/task:0/device:SIM:0'
    """

    def __init__(self, device_name):
        if callable(device_name):
            raise RuntimeError("tf.device does not support functions.")
        self._given = device_name
        # What is no name of a device is refused here, and one that is not there where the scope is entered.
        self._name = None if device_name is None else _parsed(device_name)[0]

    def __enter__(self):
        if self._name is not None and _t.is_tracing():
            _once("device in a function", f"tf.device({self._name!r}) inside of a function says where variables and constants go: the "
                                          "function runs where its arguments and variables are")
        try:
            _t.enter_device(self._name if self._name is None else _device(self._name))
        except _InvalidArgumentError as error:
            if not _t.soft_placement():
                raise
            _once(("device", self._name), f"tf.device({self._given!r}): {error}; the CPU is taken instead")
            _t.enter_device("cpu:0")
        return self

    def __exit__(self, *exception):
        _t.leave_device()


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
