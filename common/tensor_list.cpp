#include "tensor_list.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "error.h"
#include "recorder.h"
#include "tensor_layout.h"

namespace fuse {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

// Lists over the same memory share an identity, however they came to be: a
// recording then knows them for the same list.
class Registry {
 public:
  void add(ListImpl& list) {
    const std::scoped_lock lock(mutex_);
    const auto [first, last] = lists_.equal_range(list.content_hash);
    const auto twin = std::find_if(first, last, [&](const auto& known) {
      return same_memory(*known.second, list);
    });
    list.id = twin != last ? twin->second->id : ++last_id_;
    lists_.emplace(list.content_hash, &list);
  }

  void remove(const ListImpl& list) {
    const std::scoped_lock lock(mutex_);
    const auto [first, last] = lists_.equal_range(list.content_hash);
    lists_.erase(std::find_if(
        first, last, [&](const auto& known) { return known.second == &list; }));
  }

 private:
  static bool same_memory(const ListImpl& a, const ListImpl& b) {
    return a.dtype == b.dtype && a.rate == b.rate && a.device == b.device &&
           a.addresses == b.addresses && a.numels == b.numels &&
           std::equal(a.layouts.begin(), a.layouts.end(), b.layouts.begin(),
                      b.layouts.end(), same_layout);
  }
  static bool same_layout(const Layout& a, const Layout& b) {
    return std::equal(a.sizes, a.sizes + a.rank, b.sizes, b.sizes + b.rank) &&
           std::equal(a.strides, a.strides + a.rank, b.strides,
                      b.strides + b.rank);
  }

  std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, const ListImpl*> lists_;
  std::uint64_t last_id_ = 0;
};

Registry& registry() {
  static auto* const instance = new Registry;  // outlives static lists
  return *instance;
}

std::string name_of(const ListImpl& list, std::size_t i) {
  const std::string label = list.label.empty() ? "tensor list" : list.label;
  return label + "[" + std::to_string(i) + "]";
}

void check(const ListImpl& list, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) {
      throw Error(name_of(list, i) +
                  " is an undefined tensor; leave it out of the list");
    }
    if (tensors[i].dtype() != tensors[0].dtype()) {
      throw Error(name_of(list, i) + " is " + name_of(tensors[i].dtype()) +
                  " but " + name_of(list, 0) + " is " +
                  name_of(tensors[0].dtype()) +
                  "; make one list for each dtype");
    }
    if (tensors[i].device() != tensors[0].device()) {
      throw Error(name_of(list, i) + " is on " +
                  to_string(tensors[i].device()) + " but " + name_of(list, 0) +
                  " is on " + to_string(tensors[0].device()) +
                  "; make one list for each device");
    }
    if (list.rate == Rate::entry && tensors[i].dim() != 0) {
      throw Error(name_of(list, i) + " has shape " +
                  to_string(tensors[i].shape()) +
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

ListImpl::~ListImpl() {
  if (id != 0) registry().remove(*this);
}

void ListImpl::hold(std::vector<Tensor> list) {
  tensors = std::move(list);
  count = tensors.size();
  if (count > 0) {
    dtype = tensors[0].dtype();
    device = tensors[0].device();
  }
  content_hash = mix(std::uint64_t(dtype), std::uint64_t(rate));
  shape_hash = 0;
  begin = UINTPTR_MAX;
  end = 0;
  addresses.reserve(count);
  numels.reserve(count);
  bool strided = false;
  for (const Tensor& tensor : tensors) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.raw_data());
    begin = std::min(begin, address);
    end = std::max(end, address + extent_bytes(*tensor.impl()));
    strided = strided || !tensor.is_contiguous();
    addresses.push_back(tensor.raw_data());
    numels.push_back(tensor.numel());
    content_hash = mix(content_hash, address);
    content_hash = mix(content_hash, std::uint64_t(tensor.numel()));
    shape_hash = mix(shape_hash, tensor.shape().size());
    for (const std::int64_t size : tensor.shape()) {
      shape_hash = mix(shape_hash, std::uint64_t(size));
    }
  }
  if (strided) add_layouts();
  registry().add(*this);
}

void ListImpl::add_layouts() {
  layouts.reserve(count);
  for (const Tensor& tensor : tensors) {
    layouts.push_back(layout_of(*tensor.impl()));
    for (const std::int64_t stride : tensor.strides()) {
      content_hash = mix(content_hash, std::uint64_t(stride));
    }
  }
}

ListView ListImpl::view() const {
  return {id,
          addresses.data(),
          numels.data(),
          count,
          label.empty() ? nullptr : label.c_str(),
          layouts.empty() ? nullptr : layouts.data()};
}

TensorList::TensorList() : TensorList(std::vector<Tensor>()) {}

TensorList::TensorList(std::vector<Tensor> tensors, const char* label)
    : impl_(make(std::move(tensors), Rate::element, label)) {}

TensorList TensorList::per_tensor(std::vector<Tensor> scalars,
                                  const char* label) {
  return TensorList(make(std::move(scalars), Rate::entry, label));
}

const std::vector<Tensor>& TensorList::tensors() const {
  if (impl_->recorder != nullptr) {
    impl_->recorder->flush("a list is read before it is computed");
  }
  if (impl_->id == 0) {
    throw Error(
        "this list was never computed: the compiled function that recorded it "
        "ended with an exception");
  }
  return impl_->tensors;
}

std::shared_ptr<ListImpl> number_list(const Tensor& number,
                                      const std::string& label) {
  static std::mutex mutex;
  TensorImpl& impl = *number.impl();
  const std::scoped_lock lock(mutex);
  auto& list = impl.as_number;
  if (list == nullptr) {  // of a handle of its own, else it held itself
    list = make({Tensor(bare(impl))}, Rate::uniform, label.c_str());
  }
  return list;
}

bool bitwise_equal(const TensorList& a, const TensorList& b) {
  return bitwise_equal(a.tensors(), b.tensors());
}

}  // namespace fuse
