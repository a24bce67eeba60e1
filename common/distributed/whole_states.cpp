#include "fusebook/distributed/whole_states.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "fusebook/distributed/share_states.h"

namespace fuse {
namespace {

// Of the states of a share: a number, then each with its name, dtype, whether it
// is one number for the parameter, and its bytes.
class Packed {
 public:
  void add(std::uint64_t number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void add(std::string_view bytes) {
    add(std::uint64_t(bytes.size()));
    text.append(bytes);
  }
  void add(const Tensor& state) {
    const Tensor here = state.contiguous().cpu();
    add(std::uint64_t(state.dtype()));
    add(std::string_view(static_cast<const char*>(here.address(false)),
                         here.nbytes()));
  }
  std::string text;
};

class Unpacked {
 public:
  explicit Unpacked(std::string_view text) : rest_(text) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view bytes() { return take(number()); }

 private:
  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
};

void pack_states(Packed& out, const Optimizer& optimizer, const Tensor& view) {
  const ParamStates states = optimizer.states(view);
  out.add(std::uint64_t(states.size()));
  for (const auto& [name, state] : states) {
    out.add(name);
    out.add(std::uint64_t(is_number(state, view)));
    out.add(state);
  }
}

// Those of one share, into the states of its parameter.
void unpack_states(Unpacked& in, const Share& share, const Tensor& param,
                   ParamStates& whole) {
  for (std::uint64_t left = in.number(); left > 0; --left) {
    const std::string name(in.bytes());
    const bool one = in.number() != 0;
    const auto dtype = DType(in.number());
    const std::string_view bytes = in.bytes();
    Tensor& state = whole[name];
    if (!state.defined()) {
      state = empty(one ? Shape() : param.shape(), dtype, cpu_device);
    }
    auto* const begin = static_cast<char*>(state.address(true));
    const std::size_t skipped =
        one || share.begin == 0 ? 0 : bytes_of(dtype, share.begin);
    std::memcpy(begin + skipped, bytes.data(), bytes.size());
  }
}

}  // namespace

WholeStates::WholeStates(ShardedOptimizer& sharded) : sharded_(sharded) {
  Optimizer& optimizer = sharded_.optimizer_;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    ParamGroup& group = optimizer.group(g);
    own_.push_back(std::exchange(group.params, {}));
    names_.push_back(std::exchange(group.param_names, sharded_.names_[g]));
  }
  for (std::size_t p = 0; p < sharded_.params_.size(); ++p) {
    optimizer.group(sharded_.group_of_[p])
        .params.push_back(sharded_.params_[p]);
  }
}

WholeStates::~WholeStates() {
  Optimizer& optimizer = sharded_.optimizer_;
  for (const Tensor& each : sharded_.params_) {
    optimizer.restore_states(each, {});
  }
  for (std::size_t g = 0; g < own_.size(); ++g) {
    optimizer.group(g).params = std::move(own_[g]);
    optimizer.group(g).param_names = std::move(names_[g]);
  }
}

std::vector<std::string> WholeStates::gather(ShardedOptimizer& sharded) {
  Packed own;
  for (const Tensor& view : sharded.own_) {
    pack_states(own, sharded.optimizer_, view);
  }
  return sharded.ranks_.gather_in_first(own.text, &RankTraffic::states);
}

void WholeStates::put(const std::vector<std::string>& packed) {
  std::vector<Unpacked> in(packed.begin(), packed.end());
  std::vector<ParamStates> whole(sharded_.params_.size());
  for (const Share& each : sharded_.shares_) {
    unpack_states(in[std::size_t(each.owner)], each,
                  sharded_.params_[each.param], whole[each.param]);
  }
  for (std::size_t p = 0; p < whole.size(); ++p) {
    sharded_.optimizer_.restore_states(sharded_.params_[p], whole[p]);
  }
}

void WholeStates::share() {
  std::size_t next = 0;
  for (const Share& each : sharded_.shares_) {
    if (each.owner != sharded_.ranks_.rank()) continue;
    share_states(sharded_.optimizer_, sharded_.params_[each.param], each,
                 sharded_.own_[next++]);
  }
}

}  // namespace fuse
