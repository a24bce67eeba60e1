#include "fusebook/tensor/tensor_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>

#include "fusebook/support/error.h"
#include "fusebook/tensor/borrowed_list.h"
#include "fusebook/tensor/list_registry.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/tensor/tracer.h"

namespace fuse {
namespace {

void check(const ListImpl& list, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      throw Error(list.name(i) +
                  " is an undefined tensor; remove it from the list");
    }
    if (tensors[i].dtype() != tensors[0].dtype()) {
      throw Error(
          fmt::format("{} is {} but {} is {}; make one list for each dtype",
                      list.name(i), name_of(tensors[i].dtype()), list.name(0),
                      name_of(tensors[0].dtype())));
    }
    if (tensors[i].device() != tensors[0].device()) {
      throw Error(fmt::format(
          "{} is on {} but {} is on {}; make one list for each device",
          list.name(i), to_string(tensors[i].device()), list.name(0),
          to_string(tensors[0].device())));
    }
    if (list.rate == Rate::entry) {
      check_numbers("a list of per-tensor scalars", tensors[i].dtype());
    }
    if (list.rate == Rate::entry && tensors[i].dim() != 0) {
      throw Error(list.name(i) + " has shape " + to_string(tensors[i].shape()) +
                  "; a list of per-tensor scalars takes 0-d tensors");
    }
  }
}

std::shared_ptr<ListImpl> make(std::vector<Tensor> tensors, Rate rate,
                               const char* label) {
  auto impl = std::make_shared<ListImpl>();
  impl->rate = rate;
  impl->label = label;
  check(*impl, tensors);
  impl->hold(std::move(tensors));
  return impl;
}

}  // namespace

std::string ListImpl::name(std::size_t i) const {
  return fmt::format("{}[{}]", label.empty() ? "tensor list" : label, i);
}

ListImpl::~ListImpl() {
  if (id != 0) list_registry().remove(*this);
}

void ListImpl::hold(std::vector<Tensor> list) {
  tensors = std::move(list);
  count = tensors.size();
  if (count > 0) {
    dtype = tensors[0].dtype();
    device = tensors[0].device();
  }
  collect();
  list_registry().add(*this);
}

void ListImpl::collect() {
  shape_hash = 0;
  addresses.clear();
  numels.clear();
  layouts.clear();
  repeats = false;
  addresses.reserve(count);
  numels.reserve(count);
  bool strided = false;
  for (const Tensor& tensor : tensors) {
    strided = strided || !tensor.is_contiguous();
    addresses.push_back(tensor.raw_data());
    numels.push_back(tensor.numel());
    shape_hash = mix_hash(shape_hash, tensor.shape());
  }
  if (strided) {
    for (const Tensor& tensor : tensors) {
      layouts.push_back(layout_of(*tensor.impl()));
      repeats = repeats || has_repeats(*tensor.impl());
    }
  }
  find_place();
  content_hash = content_of(*this);
}

std::size_t ListImpl::extent_bytes(std::size_t i) const {
  const std::int64_t elements =
      layouts.empty() ? numels[i] : extent(numels[i], layouts[i]);
  return bytes_of(dtype, elements);
}

void ListImpl::find_place() {
  std::uintptr_t first = UINTPTR_MAX;
  std::uintptr_t last = 0;
  const auto add = [&](std::size_t i, std::int64_t elements) {
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[i]);
    first = std::min(first, address);
    last = std::max(last, address + bytes_of(dtype, elements));
  };
  if (layouts.empty()) {
    for (std::size_t i = 0; i < count; ++i) add(i, numels[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      add(i, extent(numels[i], layouts[i]));
    }
  }
  begin = first;
  end = last;
}

bool ListImpl::meets(const TensorImpl& tensor) const {
  const auto first = reinterpret_cast<std::uintptr_t>(tensor.data);
  const std::uintptr_t last = first + fuse::extent_bytes(tensor);
  if (end <= first || last <= begin) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(addresses[i]);
    if (at + extent_bytes(i) <= first || last <= at) continue;
    if (in_blocks(dtype)) return true;
    const Region region =
        make_region(addresses[i], numels[i],
                    layouts.empty() ? nullptr : &layouts[i], size_of(dtype));
    if (overlap(region, region_of(tensor))) return true;
  }
  return false;
}

const std::vector<Tensor>& ListImpl::handles() {
  if (owners != nullptr && tensors.size() != count) tensors = borrowed(*this);
  return tensors;
}

ListView ListImpl::view() const {
  return {id,
          addresses.data(),
          numels.data(),
          count,
          label.empty() ? nullptr : label.c_str(),
          layouts.empty() ? nullptr : layouts.data(),
          content_hash,
          repeats};
}

TensorList::TensorList() : TensorList(std::vector<Tensor>()) {}

TensorList::TensorList(std::vector<Tensor> tensors, const char* label)
    : impl_(make(std::move(tensors), Rate::element, label)) {}

TensorList TensorList::per_tensor(std::vector<Tensor> scalars,
                                  const char* label) {
  return TensorList(make(std::move(scalars), Rate::entry, label));
}

TensorList TensorList::from_blob(std::span<void* const> addresses,
                                 const TensorList& like, const char* label) {
  if (!like.defined()) {
    refuse_moved_from(std::source_location::current(), "the list of sizes");
  }
  like.check_computed();
  return foreign_list(like, addresses, label, "rebind", like.impl()->dtype);
}

void TensorList::rebind(std::span<void* const> addresses) const {
  ListImpl& own = self();
  if (own.owners == nullptr || own.gradients) {
    throw Error(
        "rebind: this list holds its tensors; only one made with "
        "TensorList::from_blob can be rebound");
  }
  if (Tracer* const recorder = Tracer::current();
      recorder != nullptr && recorder->uses(own)) {
    recorder->flush("a recorded list is rebound");
  }
  put_elsewhere(own, addresses);
}

const std::vector<Tensor>& TensorList::tensors() const { return read(self()); }

const Tensor& TensorList::operator[](std::size_t i) const {
  const std::vector<Tensor>& all = read(self());
  if (i < all.size()) return all[i];
  throw Error(fmt::format(
      "TensorList::operator[]: index {} is out of range for a list of {} "
      "tensors",
      i, all.size()));
}

const std::vector<Tensor>& TensorList::read(ListImpl& list) {
  compute(list);
  return list.handles();
}

void TensorList::check_computed() const { compute(self()); }

void TensorList::compute(const ListImpl& list) {
  if (list.recorder != nullptr) {
    list.recorder->flush("a list is read before it is computed");
  }
  if (list.id == 0) {
    throw Error(
        "this list was never computed: the compiled function that recorded it "
        "ended with an exception");
  }
}

std::shared_ptr<ListImpl> number_list(const Tensor& number,
                                      const std::string& label) {
  check_defined(number, "the number");
  static std::mutex mutex;
  TensorImpl& impl = *number.impl();
  const std::scoped_lock lock(mutex);
  auto& list = impl.as_number;
  // made with separate owners, since it would hold itself
  if (list == nullptr) {
    list = make({Tensor(bare(impl))}, Rate::uniform, label.c_str());
  }
  return list;
}

bool bitwise_equal(const TensorList& a, const TensorList& b) {
  if (!a.defined() || !b.defined()) {
    refuse_moved_from(std::source_location::current(), "one of the lists");
  }
  return bitwise_equal(a.tensors(), b.tensors());
}

}  // namespace fuse
