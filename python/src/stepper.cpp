#include "stepper.h"

#include <fmt/core.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "caller_streams.h"
#include "fusebook/compile/turn.h"
#include "fusebook/device/allocator.h"
#include "fusebook/reports/guard_report.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor_layout.h"
#include "group_options.h"
#include "messages.h"

namespace nb = nanobind;

namespace fuse::python {

Stepper::Stepper(const std::string& name)
    : name_(name),
      any_(make_optimizer(name)),
      step_(compile(std::function<void()>([this] {
                      if (as_tensors_) return any_.optimizer->step(here());
                      any_.optimizer->step({addresses_, {}}, here());
                    }),
                    {.name = name + ".step"}, here())) {}

std::string Stepper::name_of(std::size_t i) const {
  return fmt::format("parameter {}", i);
}

std::vector<std::size_t> Stepper::set_groups(const nb::list& params,
                                             const nb::list& options) {
  const Turn turn(busy_);
  const CallerStreams streams;
  std::unordered_map<PyObject*, Param> known;
  for (const Param& each : params_) known.emplace(each.object.ptr(), each);
  std::vector<Param> all;
  std::vector<std::vector<Tensor>> groups;
  std::vector<ChosenOptions> chosen;
  std::vector<std::size_t> added;
  for (std::size_t g = 0; g < params.size(); ++g) {
    groups.emplace_back();
    for (const nb::handle object : nb::cast<nb::list>(params[g])) {
      auto same = known.find(object.ptr());
      if (same == known.end()) {
        const std::string name = fmt::format("parameter {}", all.size());
        const Tensor tensor = tensor_of(object, name.c_str(), true);
        check_storable(*tensor.impl(), name.c_str());
        const Param param = {nb::borrow(object), tensor, is_watched(object)};
        same = known.emplace(object.ptr(), param).first;
        added.push_back(all.size());
      }
      groups.back().push_back(same->second.tensor);
      all.push_back(same->second);
    }
    chosen.push_back(options_from(nb::cast<nb::dict>(options[g]), name_));
  }
  any_.set_groups(groups, chosen);
  params_ = std::move(all);
  layouts_.clear();
  for (const Param& each : params_) layouts_.add(*each.tensor.impl());
  find_gpus();
  sizes_.clear();
  for (const auto& each : groups) sizes_.push_back(each.size());
  return added;
}

void Stepper::find_gpus() {
  on_gpus_.clear();
  std::vector<std::pair<Device, const DLPackExchangeAPI*>> known;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Device device = params_[i].tensor.device();
    const std::pair own(device, library_of(params_[i].object));
    if (device.is_cpu() || std::ranges::find(known, own) != known.end()) {
      continue;
    }
    known.push_back(own);
    on_gpus_.push_back(i);
  }
}

// After all code of others: a property, or a list that is made when it is read, may
// still have issued work.
void Stepper::join_streams() const {
  for (const std::size_t i : on_gpus_) {
    CallerStreams::join(params_[i].object.ptr(), layouts_.device(i));
  }
  for (const std::size_t i : others_) {
    CallerStreams::join(given_[i].object.ptr(), layouts_.device(i));
  }
}

void Stepper::set_options(std::size_t group, const nb::dict& options) {
  const Turn turn(busy_);
  ParamGroup& own = any_.optimizer->group(group);
  const ChosenOptions chosen = options_from(options, name_);
  own.check(chosen.values);
  own.storage() = chosen.storage;
  for (const auto& [name, value] : chosen.values) {
    if (const bool* const wanted = std::get_if<bool>(&value)) {
      for (const auto& [flag, on] : own.flags()) {
        if (flag == name) *on = *wanted;
      }
    } else {
      own[name].assign(std::get<Scalar>(value).value());
    }
  }
}

bool Stepper::is_of(const nb::list& params) const {
  if (params.size() != sizes_.size()) return false;
  std::size_t next = 0;
  for (std::size_t g = 0; g < sizes_.size(); ++g) {
    PyObject* const group = PyList_GET_ITEM(params.ptr(), Py_ssize_t(g));
    if (!PyList_Check(group)) return false;
    if (std::size_t(PyList_GET_SIZE(group)) != sizes_[g]) return false;
    for (std::size_t i = 0; i < sizes_[g]; ++i) {
      PyObject* const param = PyList_GET_ITEM(group, Py_ssize_t(i));
      if (param != params_[next++].object.ptr()) return false;
    }
  }
  return true;
}

// Throws Error for a parameter that is not what it was; false if it is where it
// was.
bool Stepper::has_moved(std::size_t i) {
  description_.ask(params_[i].object.ptr(), true);
  const DLTensor& told = description_.tensor();
  if (!layouts_.same_shape(i, told)) {
    throw Error(
        fmt::format("step: {} had the shape {} and now has {}; make an "
                    "optimizer for the new one",
                    name_of(i), to_string(params_[i].tensor.shape()),
                    to_string(Shape(told.shape, told.shape + told.ndim))));
  }
  if (!layouts_.same_kind(i, told)) {
    throw Error(fmt::format(
        "step: {} was {} on {}, and is of another dtype or on another device "
        "now; make an optimizer for it",
        name_of(i), fuse::name_of(params_[i].tensor.dtype()),
        to_string(params_[i].tensor.device())));
  }
  return !layouts_.same_place(i, told) || !layouts_.same_strides(i, told);
}

void Stepper::find_move(std::size_t i, std::vector<Move>& moves) {
  if (!params_[i].watched || !has_moved(i)) return;
  moves.push_back({params_[i].tensor,
                   tensor_of(params_[i].object, name_of(i).c_str(), true)});
}

nb::object Stepper::grad_of(std::size_t i) const {
  static PyObject* const grad = PyUnicode_InternFromString("grad");
  PyObject* const found = PyObject_GetAttr(params_[i].object.ptr(), grad);
  if (found != nullptr) return nb::steal(found);
  PyErr_Clear();
  throw Error("step: " + name_of(i) +
              " has no attribute grad; give the gradients, step(grads=...)");
}

void Stepper::collect(std::size_t i, nb::object gradient) {
  Given& given = given_[i];
  given.tensor = Tensor();
  given.object = std::move(gradient);
  addresses_[i] = nullptr;
  if (given.object.is_none()) return;
  static const char empty_gradient = 0;  // its address says that there is one
  if (!is_watched(given.object)) {
    const TensorImpl& param = *params_[i].tensor.impl();
    given.tensor = tensor_of(given.object,
                             ("the gradient of " + name_of(i)).c_str(), false);
    const TensorImpl& own = *given.tensor.impl();
    addresses_[i] = own.numel == 0 ? &empty_gradient : own.data;
    as_tensors_ = as_tensors_ || own.shape != param.shape ||
                  own.dtype != param.dtype || own.strides != param.strides ||
                  !(own.storage->device == param.storage->device);
    return;
  }
  try {
    description_.ask(given.object.ptr(), false);
  } catch (const Error& error) {
    throw Error("step: the gradient of " + name_of(i) + ": " + error.what());
  }
  const DLTensor& told = description_.tensor();
  const bool is_usual = layouts_.same_shape(i, told) &&
                        layouts_.same_kind(i, told) &&
                        layouts_.same_strides(i, told);
  as_tensors_ = as_tensors_ || !is_usual;
  if (told.device.device_type != kDLCPU &&
      library_of(given.object) != library_of(params_[i].object)) {
    others_.push_back(i);
  }
  if (told.data != nullptr) {
    addresses_[i] = static_cast<char*>(told.data) + told.byte_offset;
    return;
  }
  if (is_usual && !layouts_.is_empty(i)) {
    throw Error("step: the gradient of " + name_of(i) +
                " has no memory; has its storage been freed?");
  }
  addresses_[i] = &empty_gradient;
}

std::optional<nb::list> Stepper::listed(const nb::object& grads) const {
  if (grads.is_none()) return {};
  const nb::object all = nb::steal(PySequence_List(grads.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  if (nb::len(all) != params_.size()) {
    throw Error(fmt::format(
        "step: expected {} gradients, one for each parameter, but got {}; give "
        "None for a parameter without a gradient",
        params_.size(), nb::len(all)));
  }
  return nb::borrow<nb::list>(all);
}

// A parameter and its gradient are asked one after the other: what is asked of
// both lies in the same memory.
std::vector<Move> Stepper::collect(const std::optional<nb::list>& grads) {
  as_tensors_ = false;
  others_.clear();
  given_.resize(params_.size());
  addresses_.resize(params_.size());
  std::vector<Move> moves;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    find_move(i, moves);
    collect(i, grads ? nb::borrow(PyList_GET_ITEM(grads->ptr(), Py_ssize_t(i)))
                     : grad_of(i));
  }
  return moves;
}

// Gradients of another dtype or in another order.
void Stepper::run_with_tensors() {
  std::vector<Tensor> grads;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Given& given = given_[i];
    const std::string name = "the gradient of " + name_of(i);
    grads.push_back(given.object.is_none() || given.tensor.defined()
                        ? given.tensor
                        : tensor_of(given.object, name.c_str(), false));
    const Tensor& param = params_[i].tensor;
    const Tensor& grad = grads.back();
    if (!grad.defined()) continue;
    if (grad.shape() == param.shape() && grad.device() == param.device()) {
      continue;
    }
    throw Error(
        fmt::format("step: {} has shape {} on {}, but the parameter has "
                    "shape {} on {}",
                    name, to_string(grad.shape()), to_string(grad.device()),
                    to_string(param.shape()), to_string(param.device())));
  }
  // They go when the step is done, or has failed.
  struct Clear {
    std::vector<Param>& params;
    ~Clear() {
      for (Param& each : params) each.tensor.set_grad(Tensor());
    }
  } const clear{params_};
  for (std::size_t i = 0; i < params_.size(); ++i) {
    params_[i].tensor.set_grad(grads[i]);
  }
  run();
}

void Stepper::run() {
  // Others may look at counters meanwhile.
  struct Show {
    Stepper& own;
    ~Show() { own.counters_ = own.step_.counters(); }
  } const show{*this};
  const nb::gil_scoped_release released;
  without_place_in_errors([&] { step_(); });
}

nb::object Stepper::step(const nb::list& params, const nb::object& grads) {
  const Turn turn(busy_);
  if (!is_of(params)) return nb::none();
  // Gradients go when the step is done, or has failed.
  struct Release {
    Stepper& own;
    ~Release() {
      own.others_.clear();
      for (Given& each : own.given_) each = {};
    }
  } const release{*this};
  const CallerStreams streams;
  const std::optional<nb::list> all = listed(grads);
  if (const auto moves = collect(all); !moves.empty()) {
    move_tensors(moves, "step");
    for (std::size_t i = 0; i < params_.size(); ++i) {
      layouts_.update(i, *params_[i].tensor.impl());
    }
    collect(all);  // beside the parameters' new strides
  }
  join_streams();
  as_tensors_ ? run_with_tensors() : run();
  nb::list fresh;
  if (any_.optimizer->state_changes() == changes_) return fresh;
  changes_ = any_.optimizer->state_changes();
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (addresses_[i] != nullptr) fresh.append(i);
  }
  return fresh;
}

std::vector<std::string> Stepper::reports() const {
  const Turn turn(busy_);
  std::vector<std::string> texts;
  for (const RecompileReport& each : step_.recompile_reports()) {
    texts.push_back(without_place(to_string(each)));
  }
  return texts;
}

std::string Stepper::report() const {
  const Turn turn(busy_);
  return without_place(step_.report());
}

std::optional<OptimizerMemory> Stepper::memory(const nb::list& params) const {
  const Turn turn(busy_);
  if (!is_of(params)) return {};
  return any_.optimizer->memory();
}

void define_stepper(nb::module_& module) {
  module.def("all_state_names", &all_state_names);
  nb::class_<OptimizerMemory>(module, "Memory")
      .def_ro("params", &OptimizerMemory::params)
      .def_ro("states", &OptimizerMemory::states)
      .def_ro("scales", &OptimizerMemory::scales)
      .def("__repr__", [](const OptimizerMemory& own) {
        return fmt::format("Memory(params={}, states={}, scales={})",
                           own.params, own.states, own.scales);
      });
  nb::class_<Counters>(module, "Counters")
      .def_ro("launches", &Counters::launches)
      .def_ro("compilations", &Counters::compilations)
      .def_ro("recompiles", &Counters::recompiles)
      .def_ro("graph_breaks", &Counters::graph_breaks)
      .def_ro("uploads", &Counters::uploads)
      .def_ro("bytes_moved", &Counters::bytes_moved);
  module.def("still_shows", &still_shows);
  nb::class_<Stepper>(module, "Stepper")
      .def(nb::init<const std::string&>())
      .def("set_groups", &Stepper::set_groups)
      .def("set_options", &Stepper::set_options)
      .def("step", &Stepper::step, nb::arg("params"), nb::arg("grads").none())
      .def("states", &Stepper::states)
      .def("knows", &Stepper::knows)
      .def("restore", &Stepper::restore)
      .def("memory", &Stepper::memory)
      .def("counters", &Stepper::counters, nb::rv_policy::copy)
      .def("reports", &Stepper::reports)
      .def("report", &Stepper::report);
}

}  // namespace fuse::python
