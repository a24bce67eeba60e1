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

/// Which tensors of a list had no dimensions before they were broadcast to some.
enum class FromNumbers : std::uint8_t { none, some, all };

/// What every handle to one list shares. A list never changes its tensors; its
/// addresses are gathered once, when it is made. Only lists over memory that
/// they do not hold, which is that of gradients or of a caller, are put
/// elsewhere.
struct ListImpl {
  ListImpl() = default;
  ListImpl(const ListImpl&) = delete;
  ListImpl& operator=(const ListImpl&) = delete;
  ~ListImpl();

  /// Takes over tensors: gathers addresses and gives the list its identity.
  void hold(std::vector<Tensor> list);
  ListView view() const;

  /// Tensors in the shapes of this list's.
  const std::vector<Tensor>& models() const {
    return owners != nullptr ? owners->models() : tensors;
  }
  /// The tensors themselves; those over memory that the list does not hold are
  /// made when they are asked for. Throws Error for gradients that were replaced
  /// since.
  const std::vector<Tensor>& handles();
  /// True when a tensor of the list has a byte in common with another one.
  bool meets(const TensorImpl& tensor) const;
  /// An empty list is nowhere, so that it goes with any other.
  SlotInfo info() const {
    const std::uint8_t memory = count == 0 ? 0 : memory_code(device);
    return {dtype, rate, !layouts.empty(), memory};
  }

  std::vector<Tensor> tensors;  ///< see `handles`
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
  bool repeats = false;  ///< see ListView
  FromNumbers from_numbers = FromNumbers::none;
  std::string label;
  /// What the list was broadcast to, the latest last; see broadcast.h.
  std::vector<std::shared_ptr<ListImpl>> broadcasts;

  // While the value is recorded but not computed yet.
  Tracer* recorder = nullptr;
  ValueId value = -1;
  std::shared_ptr<ListImpl> like;  ///< a list with memory and the same shapes

  // Over memory that it does not hold: see borrowed_list.h.
  std::shared_ptr<ListImpl> owners;  ///< has the shapes; what has the gradients
  bool gradients = false;            ///< of the owners; else memory of a caller
  std::vector<std::int64_t> strides;  ///< what the layouts point to

  /// Bytes from the first element of a tensor to behind its last one.
  std::size_t extent_bytes(std::size_t i) const;
  /// Sets `begin` and `end`.
  void find_place();
};

/// An immutable list of tensors of one dtype, the operand of `foreach_*`. Cheap
/// to copy. Making one costs a few nanoseconds a tensor, so keep it. One that was
/// moved from throws Error, which names what was called, until it is assigned.
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

  /// A list over memory of others, of which only the addresses are known: one
  /// tensor for each of `like`, in its dtype, on its device, with its sizes and
  /// strides. The memory is the caller's, and must be there whenever operations
  /// on the list run; on a GPU until they have run. Throws Error as `rebind`.
  static TensorList from_blob(std::span<void* const> addresses,
                              const TensorList& like, const char* label = "");

  /// Puts a list over memory of others elsewhere, in a few nanoseconds a tensor;
  /// all handles to it see that, tensors taken out of it stay where they were.
  /// Inside `compile` what was recorded with the old addresses runs first (a
  /// graph break); so call it before the compiled function. A captured graph
  /// keeps the addresses that it was captured with. Throws Error for any other
  /// list, and when there is not one address a tensor, when one is null that has
  /// elements, or on a GPU not aligned to them.
  void rebind(std::span<void* const> addresses) const;

  /// False when it was moved from.
  bool defined() const { return impl_ != nullptr; }
  /// How many tensors it has.
  std::size_t size() const { return self().count; }
  /// True for a list without tensors.
  bool empty() const { return self().count == 0; }
  /// The tensors. A list that is still being recorded is computed first, which
  /// is a graph break.
  const std::vector<Tensor>& tensors() const;
  /// Computes a list that is still being recorded, too. Throws Error when it
  /// never got a value.
  void check_computed() const;
  /// Throws Error when there are not so many.
  const Tensor& operator[](std::size_t i) const;
  /// To walk over `tensors()`.
  auto begin() const { return read(self()).begin(); }
  /// To walk over `tensors()`.
  auto end() const { return read(self()).end(); }

  /// What all handles to the list share.
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

/// A 0-d tensor as the list of one number that kernels read for every tensor; the
/// same list each time as long as the tensor lives. The label is the first one
/// that it was given.
std::shared_ptr<ListImpl> number_list(const Tensor& number,
                                      const std::string& label);

/// Bit for bit, tensor by tensor; see bitwise_equal(Tensor, Tensor).
bool bitwise_equal(const TensorList& a, const TensorList& b);

}  // namespace fuse
