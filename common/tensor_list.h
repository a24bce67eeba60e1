#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "program.h"
#include "tensor.h"

namespace fuse {

class Recorder;

/// What every handle to one list shares. A list never changes its tensors; its
/// addresses are gathered once, when it is made.
struct ListImpl {
  ListImpl() = default;
  ListImpl(const ListImpl&) = delete;
  ListImpl& operator=(const ListImpl&) = delete;
  ~ListImpl();

  /// Takes over tensors: gathers addresses and gives the list its identity.
  void hold(std::vector<Tensor> list);
  ListView view() const;
  void add_layouts();
  /// An empty list is nowhere, so that it goes with any other.
  SlotInfo info() const {
    const std::uint8_t memory = count == 0 ? 0 : memory_code(device);
    return {dtype, rate, !layouts.empty(), memory};
  }

  std::vector<Tensor> tensors;
  std::vector<void*> addresses;
  std::vector<std::int64_t> numels;
  std::vector<Layout> layouts;  ///< empty if all tensors are contiguous
  std::uintptr_t begin = 0;     ///< all tensors lie between begin and end
  std::uintptr_t end = 0;
  std::uint64_t id = 0;  ///< equal for lists of the same memory; 0: no memory
  std::uint64_t content_hash = 0;
  std::uint64_t shape_hash = 0;
  std::size_t count = 0;
  DType dtype = DType::float32;
  Device device = {};
  Rate rate = Rate::element;
  std::string label;

  // While the value is recorded but not computed yet.
  Recorder* recorder = nullptr;
  ValueId value = -1;
  std::shared_ptr<ListImpl> like;  ///< a list with memory and the same shapes
};

/// An immutable list of tensors of one dtype, the operand of `foreach_*`. Cheap
/// to copy. Making one costs a few nanoseconds a tensor, so keep it.
class TensorList {
 public:
  /// An empty list.
  TensorList();
  /// Throws Error for an undefined tensor or a mix of dtypes. The label names
  /// the list in messages and in generated code.
  TensorList(std::vector<Tensor> tensors, const char* label = "");
  TensorList(std::initializer_list<Tensor> tensors)
      : TensorList(std::vector<Tensor>(tensors)) {}
  explicit TensorList(std::shared_ptr<ListImpl> impl)
      : impl_(std::move(impl)) {}

  /// A list of 0-d tensors that hold one number for each tensor of another
  /// list, such as step counts. They are computed as float64, once a tensor.
  static TensorList per_tensor(std::vector<Tensor> scalars,
                               const char* label = "");

  std::size_t size() const { return impl_->count; }
  bool empty() const { return size() == 0; }
  /// The tensors. A list that is still being recorded is computed first, which
  /// is a graph break.
  const std::vector<Tensor>& tensors() const;
  const Tensor& operator[](std::size_t i) const { return tensors()[i]; }
  auto begin() const { return tensors().begin(); }
  auto end() const { return tensors().end(); }

  const std::shared_ptr<ListImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<ListImpl> impl_;
};

/// A 0-d tensor as the list of one number that kernels read for every tensor; the
/// same list each time as long as the tensor lives. The label is the first one
/// that it was given.
std::shared_ptr<ListImpl> number_list(const Tensor& number,
                                      const std::string& label);

/// Bit for bit, tensor by tensor; see bitwise_equal(Tensor, Tensor).
bool bitwise_equal(const TensorList& a, const TensorList& b);

}  // namespace fuse
