#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

namespace fuse {

/// One option of a parameter group; the name is a literal.
struct OptionFact {
  enum class Kind : std::uint8_t { number, tensor, flag };

  const char* name = nullptr;
  int index = -1;  ///< in "betas"; -1 for a single number
  Kind kind{};
  double value = 0;  ///< of a number; 1 or 0 for a flag
};

class Facts;

/// An optimizer that can report its options.
class FactSource {
 public:
  FactSource() = default;
  FactSource(const FactSource&) = delete;
  FactSource& operator=(const FactSource&) = delete;
  virtual ~FactSource() = default;
  /// Adds its groups and their options; does nothing once the optimizer is
  /// gone.
  virtual void tell(Facts& facts) const = 0;
};

/// The options of the optimizers that a recording steps, so that a recompile
/// can be explained in those terms. They are read only when something is
/// compiled, which is rare, and reflect the options at that time.
class Facts {
 public:
  struct Group {
    std::size_t first_option = 0;
    std::int64_t params = 0;  ///< number with a gradient
  };
  struct Step {
    const std::type_info* optimizer = nullptr;
    std::source_location place;
    std::size_t first_group = 0;
  };

  /// Clears everything but keeps the memory.
  void clear();
  void add_step(const std::type_info& optimizer, std::source_location place,
                std::weak_ptr<const FactSource> source) {
    waiting_.push_back({&optimizer, place, std::move(source)});
  }
  /// Asks the sources added since the last call.
  void collect();
  void begin_group(std::int64_t params) {
    groups_.push_back({options_.size(), params});
  }
  void add(const OptionFact& option) { options_.push_back(option); }

  std::span<const Step> steps() const { return steps_; }
  std::span<const Group> groups(std::size_t step) const;
  /// The options of a group in that step.
  std::span<const OptionFact> options(std::size_t step,
                                      std::size_t group) const;

 private:
  struct Waiting {
    const std::type_info* optimizer;
    std::source_location place;
    std::weak_ptr<const FactSource> source;
  };

  std::vector<Waiting> waiting_;
  std::vector<Step> steps_;
  std::vector<Group> groups_;
  std::vector<OptionFact> options_;
};

}  // namespace fuse
