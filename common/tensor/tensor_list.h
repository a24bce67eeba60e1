#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

class Tracer;

/// Which tensors of a list had no dimensions before broadcasting.
enum class FromNumbers : std::uint8_t { none, some, all };

/// The state shared by all handles to one list. A list never changes its
/// tensors; its addresses are collected when it is made, and again when its
/// tensors are moved. Lists over memory that they do not hold, gradients or a
/// caller's, follow it to other addresses.
struct ListImpl {
  ListImpl() = default;
  ListImpl(const ListImpl&) = delete;
  ListImpl& operator=(const ListImpl&) = delete;
  ~ListImpl();

  /// Takes ownership of tensors: collects addresses and sets the identity.
  void hold(std::vector<Tensor> list);
  /// Collects what the tensors say of their memory.
  void collect();
  ListView view() const;
  /// What messages call its tensor i.
  std::string name(std::size_t i) const;

  /// Tensors with the shapes of this list.
  const std::vector<Tensor>& models() const {
    return owners != nullptr ? owners->models() : tensors;
  }
  /// The tensors themselves; those over memory that the list does not hold are
  /// made on demand. Throws Error if gradients have been replaced since.
  const std::vector<Tensor>& handles();
  /// True if a tensor of the list shares a byte with another one.
  bool meets(const TensorImpl& tensor) const;
  /// An empty list has no device, so it matches any.
  SlotInfo info() const {
    const std::uint8_t memory = count == 0 ? 0 : memory_code(device);
    return {dtype, rate, !layouts.empty(), memory};
  }

  std::vector<Tensor> tensors;  ///< see `handles`
  std::vector<void*> addresses;
  std::vector<std::int64_t> numels;
  std::vector<Layout> layouts;  ///< empty if all tensors are contiguous
  std::uintptr_t begin = 0;     ///< all tensors are between begin and end
  std::uintptr_t end = 0;
  std::uint64_t id = 0;  ///< equal for lists of the same memory; 0: no memory
  std::uint64_t content_hash = 0;
  std::uint64_t shape_hash = 0;
  std::size_t count = 0;
  DType dtype = DType::float32;
  Device device = {};
  Rate rate = Rate::element;
  bool repeats = false;  ///< see ListView
  FromNumbers from_numbers = FromNumbers::none;
  std::string label;
  /// Broadcast versions of this list, the latest last; see broadcast.h.
  std::vector<std::shared_ptr<ListImpl>> broadcasts;

  // While the value is recorded but not yet computed.
  Tracer* recorder = nullptr;
  ValueId value = -1;
  std::shared_ptr<ListImpl> like;  ///< a list with memory and the same shapes

  // Over memory that it does not hold: see borrowed_list.h.
  std::shared_ptr<ListImpl> owners;  ///< provide the shapes, or the gradients
  bool gradients = false;  ///< gradients of the owners; else a caller's memory
  std::vector<std::int64_t> strides;  ///< what the layouts point to

  /// Bytes from the first element of a tensor to one past the last.
  std::size_t extent_bytes(std::size_t i) const;
  /// Sets `begin` and `end`.
  void find_place();
};

/// An immutable list of tensors of one dtype, the operand of `foreach_*`. Cheap
/// to copy. Making one costs a few nanoseconds per tensor, so keep it. A
/// moved-from list throws Error naming what was called, until it is assigned.
class TensorList {
 public:
  /// An empty list.
  TensorList();
  /// Throws Error for an undefined tensor or mixed dtypes. The label names the
  /// list in messages and in generated code.
  TensorList(std::vector<Tensor> tensors, const char* label = "");
  TensorList(std::initializer_list<Tensor> tensors)
      : TensorList(std::vector<Tensor>(tensors)) {}
  explicit TensorList(std::shared_ptr<ListImpl> impl)
      : impl_(std::move(impl)) {}

  /// A list of 0-d tensors that hold one number for each tensor of another
  /// list, such as step counts. They are computed in float64, once per tensor.
  static TensorList per_tensor(std::vector<Tensor> scalars,
                               const char* label = "");

  /// A list over memory owned by others, known only by address: one tensor for
  /// each of `like`, with its dtype, device, sizes and strides. The memory is
  /// the caller's, and must be valid whenever operations on the list run; on a
  /// GPU, until they have finished. Throws Error like `rebind`.
  static TensorList from_blob(std::span<void* const> addresses,
                              const TensorList& like, const char* label = "");

  /// Moves a list over memory owned by others to new addresses, in a few
  /// nanoseconds per tensor; all handles to it are affected, while tensors
  /// taken from it keep their addresses. Inside `compile`, operations recorded
  /// with the old addresses run first (a graph break), so call it before the
  /// compiled function. A captured graph keeps its addresses. Throws Error for
  /// any other list, unless there is one address per tensor, and if the address
  /// of a non-empty tensor is null or, on a GPU, not aligned to its elements.
  void rebind(std::span<void* const> addresses) const;

  /// False if it was moved from.
  bool defined() const { return impl_ != nullptr; }
  /// Number of tensors.
  std::size_t size() const { return self().count; }
  /// True for a list without tensors.
  bool empty() const { return self().count == 0; }
  /// The tensors. A list that is still being recorded is computed first, which
  /// is a graph break.
  const std::vector<Tensor>& tensors() const;
  /// Also computes a list that is still being recorded. Throws Error if it
  /// never got a value.
  void check_computed() const;
  /// Throws Error if the index is out of range.
  const Tensor& operator[](std::size_t i) const;
  /// For iterating over `tensors()`.
  auto begin() const { return read(self()).begin(); }
  /// For iterating over `tensors()`.
  auto end() const { return read(self()).end(); }

  /// The state shared by all handles to the list.
  const std::shared_ptr<ListImpl>& impl(
      std::source_location call = std::source_location::current()) const {
    if (impl_ == nullptr) [[unlikely]]
      refuse_moved_from(call, "the list");
    return impl_;
  }

 private:
  ListImpl& self(
      std::source_location call = std::source_location::current()) const {
    return *impl(call);
  }
  static void compute(const ListImpl& list);
  static const std::vector<Tensor>& read(ListImpl& list);

  std::shared_ptr<ListImpl> impl_;
};

/// A 0-d tensor as the list of one number that kernels read for every tensor;
/// the same list each time while the tensor lives. Its label is the first one
/// it was given.
std::shared_ptr<ListImpl> number_list(const Tensor& number,
                                      const std::string& label);

/// Bit by bit, tensor by tensor; see bitwise_equal(Tensor, Tensor).
bool bitwise_equal(const TensorList& a, const TensorList& b);

}  // namespace fuse
