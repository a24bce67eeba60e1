#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/optim_base/param_group.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// How the shape of a state follows from that of its parameter.
enum class StateShape : std::uint8_t {
  whole,    ///< the same shape
  rows,     ///< [..., height, 1]; parameters of fewer dimensions have none
  columns,  ///< [..., 1, width]; parameters of fewer dimensions have none
  vectors,  ///< the same shape; matrices and what has more dimensions have none
};

/// A state that an optimizer keeps for each parameter: a tensor of the same
/// shape, or (at Rate::entry) one number in float64. The names are string
/// literals. A state has the same dtype at every step.
struct StateSpec {
  std::string_view name;      ///< as `Optimizer::state` takes it
  double initial = 0;         ///< initial value of every element
  Rate rate = Rate::element;  ///< one number per element, or one per parameter
  /// The hyper-parameter it starts from instead of `initial`, such as "lr".
  std::string_view initial_from = {};
  /// The dtype of a tensor; by default the parameter's. Operations on mixed
  /// dtypes promote to one that holds them all.
  std::optional<DType> dtype = {};
  /// With the masters of 16-bit parameters: in float32 unless `dtype` says
  /// otherwise.
  bool beside_master = false;
  /// Never below zero, such as an average of squares: in 8 bits it then has no
  /// sign, but a wider range.
  bool nonnegative = false;
  /// Of a tensor. With others than `whole`, a batch has matrices only, or none.
  StateShape shape = StateShape::whole;
  /// In 8 bits for parameters with at least so many elements, if any; see
  /// Optimizer::use_8bit_states.
  std::optional<std::int64_t> min_8bit_size = {};
  /// Then, how many neighbours share a scale.
  std::int64_t state_block_size = block_size;

  bool operator==(const StateSpec&) const = default;
};

/// The state that holds a 16-bit parameter in float32.
inline constexpr std::string_view master_name = "master_param";
/// The state that holds the lower half of the float32 whose upper half is a
/// parameter in bfloat16.
inline constexpr std::string_view low_half_name = "low_half";
/// The number that tells the random bits of a parameter from those of all others.
inline constexpr std::string_view rounding_key_name = "rounding_key";

/// True for the spec of masters, which only 16-bit parameters have.
bool is_master(const StateSpec& spec);
/// True for that of keys, which only they have, too.
bool is_rounding_key(const StateSpec& spec);
/// True for that of averages of rows or columns.
bool is_average(const StateSpec& spec);

/// The same specs with masters, for groups with `master_weights`, or with their
/// lower halves, for groups with `split_masters`: a table that stays for good.
std::span<const StateSpec> with_masters(std::span<const StateSpec> specs,
                                        bool split);

/// Throws Error, with a message starting with `place`, unless blocks of 8-bit
/// states may have this size.
void check_state_block_size(const std::string& place, std::int64_t size);

/// The same specs with keys of random bits, for groups with `stochastic_rounding`:
/// a table that stays for good.
std::span<const StateSpec> with_rounding_keys(std::span<const StateSpec> specs,
                                              std::uint32_t seed);

/// The key of a parameter: a whole number that depends on the seed and on its number
/// among all parameters, alone.
double rounding_key(std::uint32_t seed, std::size_t number);

/// What a tensor is a part of, where a parameter is shared out: the number of that
/// parameter, and which of its elements comes first.
struct PartOf {
  std::size_t number = 0;
  std::int64_t first = 0;
};

/// The same specs in 8 bits for parameters with at least so many elements, for
/// groups with `states_8bit`: a table that stays for good. Throws Error unless
/// blocks may have this size.
std::span<const StateSpec> with_8bit_states(std::span<const StateSpec> specs,
                                            std::int64_t min_8bit_size,
                                            std::int64_t state_block_size);

/// The dtype of this state of a parameter.
DType state_dtype(const StateSpec& spec, const Tensor& param);

/// The same without 8 bits, of the state with that name; none for a number of the
/// parameter. Throws Error, with a message starting with `place`, if there is no such
/// state.
std::optional<DType> plain_state_dtype(const std::string& place,
                                       const Tensor& param,
                                       std::span<const StateSpec> specs,
                                       const std::string& name);

/// True if a parameter with this number of dimensions has this state.
bool has_state(const StateSpec& spec, const Tensor& param);

/// The shape of this state of a parameter that has it.
Shape state_shape(const StateSpec& spec, const Tensor& param);

/// True if a parameter has states that those with fewer dimensions do not have.
bool is_factored(std::span<const StateSpec> specs, const Tensor& param);

/// True if some state of a parameter is kept in 8 bits.
bool has_8bit_states(std::span<const StateSpec> specs, const Tensor& param);

/// The states of one parameter, by name; "step" is its step count. Empty before
/// its first step.
using ParamStates = std::map<std::string, Tensor, std::less<>>;

/// The states that a parameter has with these options, of those that are kept.
ParamStates states_in_use(std::span<const StateSpec> specs, const Tensor& param,
                          ParamStates kept);

/// Throws Error, with a message starting with `place`, unless these could be
/// the states of `param`: known names, and tensors of the right shape and
/// dtype.
void check_states(const std::string& place, const Tensor& param,
                  std::span<const StateSpec> specs, const ParamStates& states);

/// The names of the states that a parameter has with these specs, "step" first.
std::vector<std::string> state_names(std::span<const StateSpec> specs,
                                     const Tensor& param);

/// The same specs, with initial values taken from the options of a group.
std::vector<StateSpec> with_initials(std::span<const StateSpec> specs,
                                     ParamGroup& group);

/// The states that an optimizer keeps for its parameters. They belong to the
/// parameter, whichever group it is in, even while it is in none.
class StateStore {
 public:
  struct Entry {
    Tensor param;  ///< held so that no other tensor can get its address
    Tensor step;
    ParamStates tensors;
  };

  /// Creates the missing states of these parameters, whose numbers among all
  /// parameters are these.
  void create(std::span<const Tensor> params,
              std::span<const std::size_t> numbers,
              std::span<const StateSpec> specs);
  /// Says that a tensor is a part of a parameter, not a whole one.
  void set_part(const Tensor& part, PartOf of);
  /// The place of a tensor's first element in its parameter.
  std::int64_t first_element(const Tensor& param) const;
  /// The states of a parameter, or null.
  const Entry* find(const Tensor& param) const;
  /// State of a parameter by name ("step" too); undefined before its first
  /// step.
  Tensor state(const Tensor& param, std::string_view name) const;
  /// All states of a parameter.
  ParamStates states(const Tensor& param) const;
  /// Sets the states of a parameter, which must have been checked. Copies into
  /// existing tensors of the same dtype; else keeps the given ones. Drops states that
  /// are not among them.
  void restore(const Tensor& param, const ParamStates& states);
  /// Moves states of these parameters that are not kept yet, or in another dtype, to
  /// memory of their own, laid out as `create` would, while an error can still leave
  /// everything as it was.
  void prepare(const std::vector<Tensor>& params,
               std::vector<ParamStates>& states) const;
  /// Commits what was created since the last `keep`, or discards it.
  void keep() {
    if (!made_.empty()) ++kept_;
    made_.clear();
  }
  void take_back();
  /// Forgets parameters that nothing else refers to any more.
  void drop_unreachable();
  /// Changes whenever a tensor kept here may have been removed.
  std::uint64_t version() const { return version_; }
  /// Changes whenever one may have been added, too.
  std::uint64_t changes() const { return version_ + kept_; }

 private:
  void create_steps(std::span<const Tensor> params);
  void create_states(std::span<const Tensor> params, const StateSpec& spec);
  void create_masters(std::span<const Tensor> params, const StateSpec& spec);
  Tensor make_master(Entry& entry, const StateSpec& spec);
  void create_rounding_keys(std::span<const Tensor> params,
                            std::span<const std::size_t> numbers,
                            const StateSpec& spec);
  void drop(std::span<const Tensor> params, std::string_view name);
  const PartOf* part_of(const Tensor& param) const;
  std::array<bool, dtype_count> kept_wide(std::span<const Tensor> params,
                                          const StateSpec& spec) const;
  void convert(Tensor& state, const StateSpec& spec, const Tensor& param,
               DType wanted);

  struct Made {
    const TensorImpl* param;
    // Empty for the step count, if nothing was kept before.
    std::string_view name;
    Tensor before;  // what was converted, if it was not made anew
  };

  std::unordered_map<const TensorImpl*, Entry> entries_;
  std::vector<Made> made_;
  struct Part {
    std::weak_ptr<TensorImpl> tensor;  // another may come to lie where it was
    PartOf of;
  };
  std::unordered_map<const TensorImpl*, Part> parts_;
  bool has_masters_ = false;
  bool has_keys_ = false;
  std::uint64_t version_ = 0;
  std::uint64_t kept_ = 0;  // times that something was added
};

}  // namespace fuse
