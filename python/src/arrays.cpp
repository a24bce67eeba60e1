#include "arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "caller_streams.h"
#include "fusebook/device/allocator.h"
#include "fusebook/dlpack/dlpack.h"
#include "fusebook/support/error.h"

namespace nb = nanobind;

namespace fuse::python {
namespace {

constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* legacy_name = "dltensor";

// The functions by which a type lends its tensors, or null.
const DLPackExchangeAPI* table_of(PyTypeObject* type) {
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  const nb::object capsule =
      nb::getattr(handle, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  auto* const table = static_cast<const DLPackExchangeAPI*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  const bool known = table->header.version.major == DLPACK_MAJOR_VERSION &&
                     table->dltensor_from_py_object_no_sync != nullptr;
  return known ? table : nullptr;
}

// Types that were asked are kept, so that no other one gets their address.
const DLPackExchangeAPI* kept_table_of(PyTypeObject* type) {
  static auto* const known =
      new std::unordered_map<PyTypeObject*, const DLPackExchangeAPI*>;
  const auto found = known->find(type);
  if (found != known->end()) return found->second;
  const DLPackExchangeAPI* const table = table_of(type);
  Py_INCREF(type);
  known->emplace(type, table);
  return table;
}

std::uint8_t code_of(char format) {
  switch (format) {
    case 'e':
    case 'f':
    case 'd':
    case 'g':
      return kDLFloat;
    case '?':
      return kDLBool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return kDLInt;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return kDLUInt;
    case 'Z':
      return kDLComplex;
    default:
      throw Error(std::string("elements of the format '") + format +
                  "' are not supported; use float32, float64 or float16");
  }
}

DLDataType type_of(const Py_buffer& buffer) {
  const char* format = buffer.format == nullptr ? "B" : buffer.format;
  if (*format == '=' || *format == '@' || *format == '<') ++format;
  if (*format == '>' || *format == '!') {
    throw Error(
        "the bytes of its elements are in the other order; copy it with "
        "astype()");
  }
  return {code_of(*format), std::uint8_t(8 * buffer.itemsize), 1};
}

// The capsule that an object's __dlpack__ makes.
nb::object lent_by(nb::handle object) {
  try {
    return object.attr("__dlpack__")(
        nb::arg("max_version") =
            nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")();
}

// A capsule with that name is still full, and empty when it is renamed.
template <class Managed>
Tensor take(const nb::object& capsule, nb::handle object, const char* name,
            const char* used) {
  auto* const lent =
      static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  CallerStreams::join(object.ptr(), lent->dl_tensor.device);
  const Tensor tensor = from_dlpack(lent);
  PyCapsule_SetName(capsule.ptr(), used);
  return tensor;
}

Tensor tensor_in(const nb::object& capsule, nb::handle object) {
  if (PyCapsule_IsValid(capsule.ptr(), versioned_name) != 0) {
    return take<DLManagedTensorVersioned>(capsule, object, versioned_name,
                                          "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule.ptr(), legacy_name) != 0) {
    return take<DLManagedTensor>(capsule, object, legacy_name, "used_dltensor");
  }
  throw Error("its __dlpack__() returned no tensor");
}

// The buffer pins a NumPy array: it refuses to be resized.
Tensor pinned(PyObject* object, bool writes) {
  auto description = std::make_unique<Description>();
  description->ask(object, writes);
  const Tensor tensor = borrow_dlpack(description->tensor());
  tensor.impl()->storage->block =
      std::shared_ptr<void>(description.release(), [](Description* own) {
        const nb::gil_scoped_acquire gil;
        delete own;
      });
  return tensor;
}

Tensor read(nb::handle object, bool writes) {
  if (const DLPackExchangeAPI* table = exchange_of(Py_TYPE(object.ptr()))) {
    DLManagedTensorVersioned* lent = nullptr;
    if (table->managed_tensor_from_py_object_no_sync(object.ptr(), &lent) !=
        0) {
      throw Error(take_exception());
    }
    try {
      CallerStreams::join(object.ptr(), lent->dl_tensor.device);
      return from_dlpack(lent);
    } catch (...) {
      if (lent->deleter != nullptr) lent->deleter(lent);
      throw;
    }
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    return pinned(object.ptr(), writes);
  }
  if (!nb::hasattr(object, "__dlpack__")) {
    throw Error(
        "it is not an array: use a torch tensor, a NumPy array, or an object "
        "with __dlpack__()");
  }
  return tensor_in(lent_by(object), object);
}

template <class Managed>
nb::object capsule_of(Managed* lent, const char* name) {
  PyObject* const capsule = PyCapsule_New(lent, name, [](PyObject* self) {
    const char* const now = PyCapsule_GetName(self);
    if (std::strncmp(now, "used", 4) == 0) return;
    auto* const kept = static_cast<Managed*>(PyCapsule_GetPointer(self, now));
    kept->deleter(kept);
  });
  if (capsule == nullptr) {
    lent->deleter(lent);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

template <class Managed>
nb::object lend(Managed* lent, const Borrower& borrower, const char* name) {
  try {
    take_turns(lent, borrower);
  } catch (...) {
    lent->deleter(lent);
    throw;
  }
  return capsule_of(lent, name);
}

nb::object lend(const Array& array, std::optional<long long> stream,
                const std::optional<std::tuple<int, int>>& max_version) {
  const Borrower borrower(array.tensor.device(), stream.value_or(1));
  if (max_version && std::get<0>(*max_version) >= 1) {
    return lend(codes_to_dlpack(array.tensor), borrower, versioned_name);
  }
  return lend(codes_to_dlpack_unversioned(array.tensor), borrower, legacy_name);
}

}  // namespace

std::string take_exception() {
  const nb::python_error error;
  const auto text = nb::cast<std::string>(nb::str(error.value()));
  return text.substr(0, text.find('\n'));  // torch adds where it was thrown
}

// A step asks for every parameter and gradient, which are of one or two types.
const DLPackExchangeAPI* exchange_of(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type = nullptr;
    const DLPackExchangeAPI* table = nullptr;
  };
  static Known recent[2];
  if (recent[0].type == type) return recent[0].table;
  std::swap(recent[0], recent[1]);
  if (recent[0].type != type) recent[0] = {type, kept_table_of(type)};
  return recent[0].table;
}

void Description::release() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
  has_buffer_ = false;
}

void Description::take_buffer() {
  tensor_ = {};
  tensor_.data = buffer_.buf;
  tensor_.device = {kDLCPU, 0};
  tensor_.dtype = type_of(buffer_);
  tensor_.ndim = buffer_.ndim;
  static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
  tensor_.shape = reinterpret_cast<std::int64_t*>(buffer_.shape);
  strides_.clear();
  for (int d = 0; d < buffer_.ndim; ++d) {
    const std::int64_t bytes = buffer_.strides[d];
    if (bytes % buffer_.itemsize != 0) {
      throw Error("its strides are not multiples of its element size; copy it");
    }
    strides_.push_back(bytes / buffer_.itemsize);
  }
  tensor_.strides = strides_.data();
}

bool Description::ask(PyObject* object, bool writes) {
  release();
  if (const DLPackExchangeAPI* table = exchange_of(Py_TYPE(object))) {
    if (table->dltensor_from_py_object_no_sync(object, &tensor_) != 0) {
      throw Error(take_exception());
    }
    return true;
  }
  if (PyObject_CheckBuffer(object) == 0) return false;
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    throw Error(take_exception());
  }
  has_buffer_ = true;
  if (writes && buffer_.readonly != 0) {
    throw Error("it may only be read, and a step would write it; copy it");
  }
  take_buffer();
  return true;
}

Tensor tensor_of(nb::handle object, const char* what, bool writes) {
  try {
    return read(object, writes);
  } catch (const Error& error) {
    const std::string type =
        nb::cast<std::string>(nb::getattr(object.type(), "__name__"));
    throw Error(std::string(what) + " (" + type + "): " + error.what());
  }
}

bool is_watched(nb::handle object) {
  return exchange_of(Py_TYPE(object.ptr())) != nullptr;
}

void define_arrays(nb::module_& module) {
  nb::class_<Array>(module, "Array")
      .def(
          "__dlpack__",
          [](const Array& array, std::optional<long long> stream,
             const std::optional<std::tuple<int, int>>& max_version,
             const nb::object&, const std::optional<bool>& copy) {
            if (copy.value_or(false)) {
              return lend({array.tensor.clone()}, stream, max_version);
            }
            return lend(array, stream, max_version);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Array& array) {
        const Device device = array.tensor.device();
        return std::tuple(int(device.is_cpu() ? kDLCPU : kDLCUDA),
                          device.index);
      });
}

}  // namespace fuse::python
