"""Libraries that lend their tensors through DLPack, and count what is lent."""

import ctypes
import weakref

import numpy as np

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("lend", ctypes.c_void_p), ("take", ctypes.c_void_p),
                ("describe", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


LENT = {}  # what is lent and not given back, by address


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _give_back(address):
    del LENT[address]


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
def _describe(given, out):
    array, told = given.array, out.contents
    given.asked += 1
    told.data = array.ctypes.data if given.has_memory else None
    told.device_type, told.device_id, told.ndim = given.device, 0, array.ndim
    told.code, told.bits = CODES[array.dtype.kind], 8 * array.itemsize
    told.lanes, told.byte_offset = 1, 0
    sizes = ctypes.c_int64 * array.ndim
    given.told = (sizes(*array.shape),
                  sizes(*(step // array.itemsize for step in array.strides)))
    told.shape, told.strides = (
        ctypes.cast(each, ctypes.POINTER(ctypes.c_int64)) for each in given.told)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                   ctypes.POINTER(ctypes.POINTER(Managed)))
def _lend(given, out):
    managed = Managed(major=1, minor=3)
    managed.deleter = ctypes.cast(_give_back, ctypes.c_void_p)
    _describe(given, ctypes.pointer(managed.tensor))
    LENT[ctypes.addressof(managed)] = managed, given.array, given.told
    out[0] = ctypes.pointer(managed)
    return 0


STREAM = 0  # the current one, on any GPU
OTHER_STREAM = 0  # that of another library
_ASKS_STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                                ctypes.POINTER(ctypes.c_void_p))


@_ASKS_STREAM
def _stream(_type, _index, out):
    out[0] = STREAM
    return 0


@_ASKS_STREAM
def _other_stream(_type, _index, out):
    out[0] = OTHER_STREAM
    return 0


def _table(stream):
    return Table(major=1, minor=3, lend=ctypes.cast(_lend, ctypes.c_void_p),
                 describe=ctypes.cast(_describe, ctypes.c_void_p),
                 stream=ctypes.cast(stream, ctypes.c_void_p))


_TABLE = _table(_stream)
_OTHER_TABLE = _table(_other_stream)
_NAME = b"dlpack_exchange_api"
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """A tensor whose type has DLPack's exchange table. It may show another array
    in each step, and says how often it was asked."""

    __dlpack_c_exchange_api__ = _capsule(ctypes.addressof(_TABLE), _NAME, None)

    def __init__(self, values, dtype=np.float64):
        self.array = np.array(values, dtype)
        self.grad = None
        self.device = 1  # the CPU; 2 is a GPU, whose memory nobody looks into
        self.has_memory = True
        self.asked = 0


class OtherTensor(Tensor):
    """One of another library."""

    __dlpack_c_exchange_api__ = _capsule(ctypes.addressof(_OTHER_TABLE), _NAME, None)


class _Seen(np.ndarray):
    """An array whose end can be seen."""


class Capsules:
    """Makes arrays that are lent by `__dlpack__`, and counts what is lent."""

    def __init__(self):
        self.given = 0
        self.returned = 0

    def array(self, values, dtype=np.float64, *, versioned=True):
        return _Lender(self, np.array(values, dtype), versioned)

    def count(self):
        self.returned += 1


class _Lender:
    def __init__(self, capsules, array, versioned):
        self.capsules = capsules
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **options):
        if not self.versioned:
            if options:
                raise TypeError("no options are known")
            options = {}
        view = self.array.view(_Seen)
        weakref.finalize(view, self.capsules.count)
        self.capsules.given += 1
        return view.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
