#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "fusebook/compile/compile.h"
#include "fusebook/tensor/move_tensors.h"
#include "layouts.h"
#include "optimizers.h"

namespace fuse::python {

/// Steps parameters that are objects of Python: a compiled step of an optimizer,
/// and what it knows of the objects' memory.
class Stepper {
 public:
  explicit Stepper(const std::string& name);

  /// Takes the parameters of all groups and their options. Returns the places of
  /// those that it did not have before.
  std::vector<std::size_t> set_groups(const nanobind::list& params,
                                      const nanobind::list& options);
  /// Sets numbers and switches of one group.
  void set_options(std::size_t group, const nanobind::dict& options);
  /// One step. Returns the places of parameters whose states are to be shown: they
  /// are new, or may be other tensors than before. None, and nothing has happened, if
  /// these are not the parameters of before: call set_groups. `grads` has one gradient
  /// for each parameter, or None; without it, each parameter's `.grad` is asked.
  nanobind::object step(const nanobind::list& params,
                        const nanobind::object& grads);
  /// The states of a parameter, by name.
  nanobind::dict states(std::size_t param) const;
  /// Whether the optimizer, with the options of the parameter's group, has a state
  /// of this name.
  bool knows(std::size_t param, const nanobind::handle& name) const;
  /// Restores the states of parameters, each by its place among all. Copies. `from`
  /// says in errors where they were.
  void restore(const nanobind::dict& states, const std::string& from);

  /// Bytes of all parameters, and of the states that there are. None if these are not
  /// the parameters of before.
  std::optional<OptimizerMemory> memory(const nanobind::list& params) const;
  /// Those after the last step.
  const Counters& counters() const { return counters_; }
  std::vector<std::string> reports() const;
  std::string report() const;

 private:
  struct Param {
    nanobind::object object;
    Tensor tensor;
    bool watched;
  };
  // A gradient that a step reads; its object lives until the step is done.
  struct Given {
    nanobind::object object;
    Tensor tensor;  // only of objects that lend
  };

  bool is_of(const nanobind::list& params) const;
  bool has_moved(std::size_t i);
  void find_move(std::size_t i, std::vector<Move>& moves);
  nanobind::object grad_of(std::size_t i) const;
  std::optional<nanobind::list> listed(const nanobind::object& grads) const;
  std::vector<Move> collect(const std::optional<nanobind::list>& grads);
  void collect(std::size_t i, nanobind::object gradient);
  void find_gpus();
  void join_streams() const;
  void run();
  void run_with_tensors();
  std::size_t group_of(std::size_t param) const;
  const GroupStorage& storage_of(std::size_t param) const;
  bool is_outdated(std::size_t i, const std::string& name,
                   const nanobind::handle& object) const;
  Tensor state_from(std::size_t i, const std::string& name,
                    const nanobind::handle& object,
                    const std::string& from) const;
  std::string name_of(std::size_t i) const;

  std::string name_;
  AnyOptimizer any_;
  std::vector<Param> params_;
  Layouts layouts_;                   // of the parameters
  std::vector<std::size_t> on_gpus_;  // a parameter of each GPU and library
  std::vector<std::size_t> others_;   // gradients of another library
  std::vector<std::size_t> sizes_;    // parameters in each group
  std::vector<Given> given_;
  std::vector<const void*> addresses_;
  std::uint64_t changes_ = 0;  // of states, as they were shown
  bool as_tensors_ = false;    // gradients that addresses cannot tell
  Description description_;
  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  Counters counters_;
  Compiled<std::function<void()>> step_;
};

/// Whether `state` still has these entries, in this order and no others, and each
/// begins with the values of its tuple: the same objects, whatever they hold.
bool still_shows(const nanobind::handle& state, const nanobind::list& entries,
                 const nanobind::list& values);

/// Adds Stepper to the module.
void define_stepper(nanobind::module_& module);

}  // namespace fuse::python
