// A stand-in for CUDA's driver that tests can look into. Memory of the device
// is memory of the host, between guards; copies copy; kernels are C++ functions
// of the test. Every call is recorded, any can be made to fail, and what is put
// on a stream can be held back until the test lets it run, so that whoever
// overwrites what is still to be read is found out.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "fusebook/cuda/cuda_api.h"

namespace testing {

class CudaStandIn {
 public:
  using Address = fuse::cuda::Address;
  using Context = fuse::cuda::Context;
  using Device = fuse::cuda::Device;
  using Event = fuse::cuda::Event;
  using Function = fuse::cuda::Function;
  using Graph = fuse::cuda::Graph;
  using GraphExec = fuse::cuda::GraphExec;
  using Module = fuse::cuda::Module;
  using Result = fuse::cuda::Result;
  using Stream = fuse::cuda::Stream;

  struct Call {
    std::string name;
    std::vector<std::uint64_t> arguments;
  };
  struct Launch {
    Function function = nullptr;
    unsigned grid = 0;
    unsigned block = 0;
    bool cooperative = false;
    /// The bytes of each parameter, as many as `parameter_sizes` says.
    std::vector<std::vector<char>> parameters;
  };

  /// Becomes what the table of `api` calls, until the next one is made.
  CudaStandIn();
  ~CudaStandIn() { instance() = nullptr; }
  CudaStandIn(const CudaStandIn&) = delete;
  CudaStandIn& operator=(const CudaStandIn&) = delete;

  const fuse::CudaApi& api() const { return api_; }
  fuse::CudaDriver driver() const { return {&api_, {}}; }

  // -- what the machine is like
  int version = 13000;
  int devices = 1;
  int capability = 90;
  int multiprocessors = 4;
  int resident = 2;
  bool cooperative = true;
  std::size_t memory_limit = std::size_t(1) << 30;

  // -- failures
  /// Call number `n` from now on (from 1) returns `code` and does nothing;
  /// unless it gives something back: then it does that, and reports what went
  /// wrong before. After a sticky code every later call on a context fails.
  void fail_nth(int n, Result code) { countdown_ = n, countdown_code_ = code; }
  /// Every call of this name returns `code`, until it is 0 again.
  void fail_always(const std::string& name, Result code) {
    failing_[name] = code;
  }
  /// True when the failure asked for by `fail_nth` has come.
  bool has_failed() const { return countdown_ <= 0; }
  /// Name of the call that `fail_nth` hit.
  std::string failed_call;

  // -- what happened
  std::vector<Call> calls;
  std::vector<Launch> launches;
  /// What no program may do: overruns, use of freed memory, wrong handles.
  std::vector<std::string> violations;
  int count(const std::string& name) const {
    int n = 0;
    for (const Call& call : calls) n += int(call.name == name);
    return n;
  }
  /// What has not been given back; empty: nothing.
  std::string alive() const;
  std::size_t bytes_allocated() const { return allocated_; }

  // -- kernels and time
  std::vector<std::size_t> parameter_sizes;
  /// Runs when the device comes to a launch.
  std::function<void(const Launch&)> kernel;
  /// Holds back what is put on streams, until `run` or a wait.
  bool deferred = false;
  /// Lets the device do the next `n` pieces of work.
  void run(std::size_t n = std::size_t(-1));
  std::size_t pending() const { return work_.size(); }

  // -- the calls; CudaApi says what they are
  Result init(unsigned);
  Result driver_get_version(int*);
  Result device_get_count(int*);
  Result device_get(Device*, int);
  Result device_get_name(char*, int, Device);
  Result device_get_attribute(int*, int, Device);
  Result device_total_mem(std::size_t*, Device);
  Result primary_ctx_retain(Context*, Device);
  Result primary_ctx_release(Device);
  Result ctx_push(Context);
  Result ctx_pop(Context*);
  Result ctx_set_current(Context);
  Result mem_get_info(std::size_t*, std::size_t*);
  Result mem_alloc(Address*, std::size_t);
  Result mem_free(Address);
  Result mem_host_alloc(void**, std::size_t, unsigned);
  Result mem_free_host(void*);
  Result memcpy_htod_async(Address, const void*, std::size_t, Stream);
  Result memcpy_dtoh_async(void*, Address, std::size_t, Stream);
  Result memcpy_dtod_async(Address, Address, std::size_t, Stream);
  Result memset_d8_async(Address, unsigned char, std::size_t, Stream);
  Result stream_create(Stream*, unsigned);
  Result stream_destroy(Stream);
  Result stream_synchronize(Stream);
  Result stream_wait_event(Stream, Event, unsigned);
  Result stream_begin_capture(Stream, int);
  Result stream_end_capture(Stream, Graph*);
  Result stream_is_capturing(Stream, int*);
  Result graph_instantiate(GraphExec*, Graph, unsigned long long);
  Result graph_launch(GraphExec, Stream);
  Result graph_exec_destroy(GraphExec);
  Result graph_destroy(Graph);
  Result event_create(Event*, unsigned);
  Result event_destroy(Event);
  Result event_record(Event, Stream);
  Result event_query(Event);
  Result event_synchronize(Event);
  Result event_elapsed_time(float*, Event, Event);
  Result module_load_data(Module*, const void*);
  Result module_unload(Module);
  Result module_get_function(Function*, Module, const char*);
  Result func_get_attribute(int*, int, Function);
  Result launch_kernel(Function, unsigned, unsigned, unsigned, unsigned,
                       unsigned, unsigned, unsigned, Stream, void**, void**);
  Result launch_cooperative(Function, unsigned, unsigned, unsigned, unsigned,
                            unsigned, unsigned, unsigned, Stream, void**);
  Result occupancy_blocks(int*, Function, int, std::size_t);
  Result get_error_name(Result, const char**);
  Result get_error_string(Result, const char**);

  /// Where the table leads.
  template <auto Method, class... A>
  static Result enter(const char* name, A... arguments);

 private:
  using Work = std::function<void()>;
  struct EventState {
    int wanted = 0;   // how often it was recorded
    int reached = 0;  // which of these the device has come to
    std::int64_t time = 0;
  };
  static constexpr std::size_t guard = 256;
  static constexpr char guard_byte = char(0xA5);

  static CudaStandIn*& instance() {
    static CudaStandIn* current = nullptr;
    return current;
  }
  static std::vector<Context>& stack() {
    static thread_local std::vector<Context> contexts;
    return contexts;
  }
  template <class T>
  static std::uint64_t as_number(T value) {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<std::uintptr_t>(value);
    } else {
      return std::uint64_t(value);
    }
  }

  Result begin(const std::string& name);
  Result put_launch(Launch launch, Stream stream, void** parameters);
  bool is_exempt(const std::string& name) const;
  static bool gives_back(const std::string& name);
  Result violate(const std::string& what) {
    violations.push_back(what);
    return fuse::cuda::invalid_value;
  }
  bool owns(Address at, std::size_t bytes) const;
  void put(Work work);
  Result refuse_in_capture();
  template <class Handle>
  Handle make(const char* kind) {
    handles_[++last_handle_] = kind;
    return reinterpret_cast<Handle>(last_handle_ * 64);
  }
  template <class Handle>
  bool is_handle(Handle handle, const char* kind) const {
    const auto found = handles_.find(as_number(handle) / 64);
    return found != handles_.end() && found->second == kind;
  }
  template <class Handle>
  Result drop(Handle handle, const char* kind) {
    if (!is_handle(handle, kind)) return violate(std::string("no ") + kind);
    handles_.erase(as_number(handle) / 64);
    return 0;
  }

  fuse::CudaApi api_;
  std::recursive_mutex mutex_;
  int countdown_ = -1;
  Result countdown_code_ = 0;
  Result sticky_ = 0;
  std::map<std::string, Result> failing_;
  std::map<std::uint64_t, std::string> handles_;
  std::uint64_t last_handle_ = 0;
  std::map<Address, std::size_t> memory_;
  std::map<void*, std::size_t> host_memory_;
  std::set<const void*> in_flight_;  // what copies still read
  std::size_t allocated_ = 0;
  std::map<Device, int> retained_;
  std::map<Event, EventState> events_;
  std::deque<Work> work_;
  std::int64_t clock_ = 0;
  bool capturing_ = false;
  bool capture_broken_ = false;
  std::vector<Work> captured_;
  std::map<Graph, std::vector<Work>> graphs_;
  std::map<GraphExec, std::vector<Work>> executables_;
};

template <auto Method, class... A>
CudaStandIn::Result CudaStandIn::enter(const char* name, A... arguments) {
  CudaStandIn& self = *instance();
  const std::lock_guard lock(self.mutex_);
  const std::string called = name;
  if (!called.starts_with("cuGetError")) {
    self.calls.push_back({called, {as_number(arguments)...}});
    const Result failure = self.begin(called);
    if (failure != 0) {
      if (gives_back(called)) (self.*Method)(arguments...);
      return failure;
    }
  }
  return (self.*Method)(arguments...);
}

namespace stand_in_detail {

enum CallNumber : int {
#define CUDA_CALL(member, symbol, parameters) number_of_##member,
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
};

/// The names without the numbers of their versions, as people know them.
inline const char* call_name(int number) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string full : {
#define CUDA_CALL(member, symbol, parameters) #symbol,
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
         }) {
      all.push_back(full.substr(0, full.find("_v")));
    }
    return all;
  }();
  return names[std::size_t(number)].c_str();
}

template <auto Method>
struct Arguments;
template <class... A, int (CudaStandIn::*Method)(A...)>
struct Arguments<Method> {
  template <int Number>
  static int call(A... arguments) {
    return CudaStandIn::enter<Method>(call_name(Number), arguments...);
  }
};

}  // namespace stand_in_detail

inline CudaStandIn::CudaStandIn() {
  instance() = this;
  stack().clear();
#define CUDA_CALL(member, symbol, parameters)                          \
  api_.member =                                                        \
      stand_in_detail::Arguments<&CudaStandIn::member>::template call< \
          stand_in_detail::number_of_##member>;
#include "fusebook/cuda/cuda_calls.def"
#undef CUDA_CALL
}

inline bool CudaStandIn::is_exempt(const std::string& name) const {
  return name == "cuInit" || name == "cuDriverGetVersion" ||
         name.starts_with("cuDevice") || name.starts_with("cuCtx");
}

inline bool CudaStandIn::gives_back(const std::string& name) {
  static const std::set<std::string> names = {
      "cuMemFree",           "cuMemFreeHost",     "cuStreamDestroy",
      "cuEventDestroy",      "cuModuleUnload",    "cuGraphDestroy",
      "cuGraphExecDestroy",  "cuCtxPopCurrent",   "cuDevicePrimaryCtxRelease",
      "cuStreamSynchronize", "cuStreamEndCapture"};
  return names.contains(name);
}

// What stands in the way of a call; 0: nothing.
inline CudaStandIn::Result CudaStandIn::begin(const std::string& name) {
  if (countdown_ > 0 && --countdown_ == 0) {
    failed_call = name;
    if (countdown_code_ >= 700 && countdown_code_ < 800) {
      sticky_ = countdown_code_;
      work_.clear();  // a lost context does no more
      in_flight_.clear();
    }
    return countdown_code_;
  }
  const auto failing = failing_.find(name);
  if (failing != failing_.end() && failing->second != 0) {
    return failing->second;
  }
  if (is_exempt(name)) return 0;
  if (stack().empty()) {
    violations.push_back(name + " without a current context");
    return 201;
  }
  return sticky_;
}

inline std::string CudaStandIn::alive() const {
  std::string text;
  for (const auto& [number, kind] : handles_) text += kind + " ";
  if (!memory_.empty()) {
    text += std::to_string(memory_.size()) + " pieces of device memory ";
  }
  if (!host_memory_.empty()) {
    text += std::to_string(host_memory_.size()) + " pinned buffers ";
  }
  for (const auto& [device, count] : retained_) {
    if (count != 0) text += "context retained ";
  }
  if (!stack().empty()) text += "context current ";
  return text;
}

inline void CudaStandIn::run(std::size_t n) {
  const std::lock_guard lock(mutex_);
  for (; n > 0 && !work_.empty(); --n) {
    const Work next = std::move(work_.front());
    work_.pop_front();
    ++clock_;
    next();
  }
}

inline void CudaStandIn::put(Work work) {
  if (capturing_) {
    captured_.push_back(std::move(work));
    return;
  }
  work_.push_back(std::move(work));
  if (!deferred) run();
}

inline CudaStandIn::Result CudaStandIn::refuse_in_capture() {
  if (!capturing_) return 0;
  capture_broken_ = true;
  return fuse::cuda::capture_unsupported;
}

inline bool CudaStandIn::owns(Address at, std::size_t bytes) const {
  const auto after = memory_.upper_bound(at);
  if (after == memory_.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return at + bytes <= start + size;
}

inline int CudaStandIn::init(unsigned) {
  return devices == 0 ? fuse::cuda::no_device : 0;
}
inline int CudaStandIn::driver_get_version(int* out) {
  *out = version;
  return 0;
}
inline int CudaStandIn::device_get_count(int* out) {
  *out = devices;
  return 0;
}
inline int CudaStandIn::device_get(Device* out, int ordinal) {
  if (ordinal < 0 || ordinal >= devices) return fuse::cuda::invalid_device;
  *out = 100 + ordinal;  // a handle is no ordinal
  return 0;
}
inline int CudaStandIn::device_get_name(char* name, int length, Device device) {
  const std::string text = "Stand-in " + std::to_string(device - 100);
  std::strncpy(name, text.c_str(), std::size_t(length));
  return 0;
}
inline int CudaStandIn::device_get_attribute(int* out, int which, Device) {
  switch (which) {
    case fuse::cuda::attribute_capability_major:
      *out = capability / 10;
      return 0;
    case fuse::cuda::attribute_capability_minor:
      *out = capability % 10;
      return 0;
    case fuse::cuda::attribute_multiprocessor_count:
      *out = multiprocessors;
      return 0;
    case fuse::cuda::attribute_cooperative_launch:
      *out = int(cooperative);
      return 0;
    case fuse::cuda::attribute_max_threads_per_block:
      *out = 1024;
      return 0;
    default:
      *out = 1;
      return 0;
  }
}
inline int CudaStandIn::device_total_mem(std::size_t* out, Device) {
  *out = memory_limit;
  return 0;
}
inline int CudaStandIn::primary_ctx_retain(Context* out, Device device) {
  ++retained_[device];
  *out = reinterpret_cast<Context>(std::uintptr_t(device));
  return 0;
}
inline int CudaStandIn::primary_ctx_release(Device device) {
  if (--retained_[device] < 0) return violate("released once too often");
  return 0;
}
inline int CudaStandIn::ctx_push(Context context) {
  if (context == nullptr) return fuse::cuda::invalid_value;
  stack().push_back(context);
  return 0;
}
inline int CudaStandIn::ctx_pop(Context* out) {
  if (stack().empty()) return violate("no context to pop");
  *out = stack().back();
  stack().pop_back();
  return 0;
}
inline int CudaStandIn::ctx_set_current(Context context) {
  if (!stack().empty()) stack().pop_back();
  if (context != nullptr) stack().push_back(context);
  return 0;
}
inline int CudaStandIn::mem_get_info(std::size_t* free, std::size_t* total) {
  *free = memory_limit - allocated_;
  *total = memory_limit;
  return 0;
}
inline int CudaStandIn::mem_alloc(Address* out, std::size_t bytes) {
  if (const Result refused = refuse_in_capture()) return refused;
  if (bytes == 0) return fuse::cuda::invalid_value;
  if (bytes > memory_limit - allocated_) return fuse::cuda::out_of_memory;
  const std::size_t whole = (bytes + 2 * guard + 255) / 256 * 256;
  auto* const start = static_cast<char*>(std::aligned_alloc(256, whole));
  std::memset(start, guard_byte, whole);
  std::memset(start + guard, 0xCD, bytes);
  *out = as_number(start + guard);
  memory_[*out] = bytes;
  allocated_ += bytes;
  return 0;
}
inline int CudaStandIn::mem_free(Address at) {
  run();  // as the driver waits for the device
  const auto found = memory_.find(at);
  if (found == memory_.end()) return violate("freed what was not allocated");
  char* const start = reinterpret_cast<char*>(std::uintptr_t(at)) - guard;
  const std::size_t end = guard + found->second;
  for (std::size_t i = 0; i < guard; ++i) {
    if (start[i] != guard_byte || start[end + i] != guard_byte) {
      violate("wrote beyond its memory");
      break;
    }
  }
  allocated_ -= found->second;
  memory_.erase(found);
  std::free(start);
  return 0;
}
inline int CudaStandIn::mem_host_alloc(void** out, std::size_t bytes,
                                       unsigned) {
  if (const Result refused = refuse_in_capture()) return refused;
  *out = std::malloc(bytes);
  host_memory_[*out] = bytes;
  return 0;
}
inline int CudaStandIn::mem_free_host(void* memory) {
  if (host_memory_.erase(memory) == 0) return violate("no pinned memory");
  if (in_flight_.contains(memory)) violate("freed pinned memory in flight");
  std::free(memory);
  return 0;
}
inline int CudaStandIn::memcpy_htod_async(Address to, const void* from,
                                          std::size_t bytes, Stream stream) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  in_flight_.insert(from);
  put([=, this] {
    in_flight_.erase(from);
    if (!owns(to, bytes)) {
      violate("copied to where nothing is");
      return;
    }
    std::memcpy(reinterpret_cast<void*>(std::uintptr_t(to)), from, bytes);
  });
  return 0;
}
inline int CudaStandIn::memcpy_dtoh_async(void* to, Address from,
                                          std::size_t bytes, Stream stream) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  put([=, this] {
    if (!owns(from, bytes)) {
      violate("copied from where nothing is");
      return;
    }
    std::memcpy(to, reinterpret_cast<void*>(std::uintptr_t(from)), bytes);
  });
  return 0;
}
inline int CudaStandIn::memcpy_dtod_async(Address to, Address from,
                                          std::size_t bytes, Stream stream) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  put([=, this] {
    if (!owns(from, bytes) || !owns(to, bytes)) {
      violate("copied where nothing is");
      return;
    }
    std::memmove(reinterpret_cast<void*>(std::uintptr_t(to)),
                 reinterpret_cast<void*>(std::uintptr_t(from)), bytes);
  });
  return 0;
}
inline int CudaStandIn::memset_d8_async(Address to, unsigned char value,
                                        std::size_t bytes, Stream stream) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  put([=, this] {
    if (!owns(to, bytes)) {
      violate("filled where nothing is");
      return;
    }
    std::memset(reinterpret_cast<void*>(std::uintptr_t(to)), value, bytes);
  });
  return 0;
}
inline int CudaStandIn::stream_create(Stream* out, unsigned) {
  *out = make<Stream>("stream");
  return 0;
}
inline int CudaStandIn::stream_destroy(Stream stream) {
  return drop(stream, "stream");
}
inline int CudaStandIn::stream_synchronize(Stream stream) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  if (const Result refused = refuse_in_capture()) return refused;
  run();
  return 0;
}
inline int CudaStandIn::stream_wait_event(Stream, Event, unsigned) {
  return 0;  // there is one stream
}
inline int CudaStandIn::stream_begin_capture(Stream stream, int) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  if (capturing_) return fuse::cuda::invalid_value;
  capturing_ = true;
  capture_broken_ = false;
  captured_.clear();
  return 0;
}
inline int CudaStandIn::stream_end_capture(Stream, Graph* out) {
  if (!capturing_) return fuse::cuda::invalid_value;
  capturing_ = false;
  if (capture_broken_) return fuse::cuda::capture_invalidated;
  *out = make<Graph>("graph");
  graphs_[*out] = std::move(captured_);
  captured_.clear();
  return 0;
}
inline int CudaStandIn::stream_is_capturing(Stream, int* status) {
  *status = int(capturing_);
  return 0;
}
inline int CudaStandIn::graph_instantiate(GraphExec* out, Graph graph,
                                          unsigned long long) {
  if (!is_handle(graph, "graph")) return violate("no graph");
  *out = make<GraphExec>("executable graph");
  executables_[*out] = graphs_[graph];
  return 0;
}
inline int CudaStandIn::graph_launch(GraphExec exec, Stream) {
  if (!is_handle(exec, "executable graph")) return violate("no graph");
  for (const Work& work : executables_[exec]) put(work);
  return 0;
}
inline int CudaStandIn::graph_exec_destroy(GraphExec exec) {
  executables_.erase(exec);
  return drop(exec, "executable graph");
}
inline int CudaStandIn::graph_destroy(Graph graph) {
  graphs_.erase(graph);
  return drop(graph, "graph");
}
inline int CudaStandIn::event_create(Event* out, unsigned) {
  *out = make<Event>("event");
  events_[*out] = {};
  return 0;
}
inline int CudaStandIn::event_destroy(Event event) {
  return drop(event, "event");
}
inline int CudaStandIn::event_record(Event event, Stream) {
  if (!is_handle(event, "event")) return violate("no event");
  const int turn = ++events_[event].wanted;
  put([=, this] {
    events_[event].reached = turn;
    events_[event].time = clock_;
  });
  return 0;
}
inline int CudaStandIn::event_query(Event event) {
  if (!is_handle(event, "event")) return violate("no event");
  if (const Result refused = refuse_in_capture()) return refused;
  const EventState& state = events_[event];
  return state.reached < state.wanted ? fuse::cuda::not_ready : 0;
}
inline int CudaStandIn::event_synchronize(Event event) {
  if (!is_handle(event, "event")) return violate("no event");
  if (const Result refused = refuse_in_capture()) return refused;
  while (events_[event].reached < events_[event].wanted) run(1);
  return 0;
}
inline int CudaStandIn::event_elapsed_time(float* out, Event begin, Event end) {
  if (!is_handle(begin, "event") || !is_handle(end, "event")) {
    return violate("no event");
  }
  if (events_[begin].wanted == 0 || events_[end].wanted == 0) return 400;
  *out = float(events_[end].time - events_[begin].time);
  return 0;
}
inline int CudaStandIn::module_load_data(Module* out, const void* image) {
  const std::string_view text(static_cast<const char*>(image));
  if (text.starts_with("for another device")) {
    return fuse::cuda::no_binary_for_gpu;
  }
  *out = make<Module>("module");
  return 0;
}
inline int CudaStandIn::module_unload(Module module) {
  return drop(module, "module");
}
inline int CudaStandIn::module_get_function(Function* out, Module module,
                                            const char* name) {
  if (!is_handle(module, "module")) return violate("no module");
  if (std::string(name) != "fuse_kernel") return fuse::cuda::not_found;
  *out = reinterpret_cast<Function>(module);  // one a module
  return 0;
}
inline int CudaStandIn::func_get_attribute(int* out, int which, Function) {
  *out = which == fuse::cuda::function_registers ? 40 : 8;
  return 0;
}
inline int CudaStandIn::put_launch(Launch launch, Stream stream,
                                   void** parameters) {
  if (!is_handle(stream, "stream")) return violate("no stream");
  if (!is_handle(launch.function, "module")) return violate("no function");
  if (launch.grid == 0) return fuse::cuda::invalid_value;
  for (std::size_t i = 0; i < parameter_sizes.size(); ++i) {
    const char* const bytes = static_cast<const char*>(parameters[i]);
    launch.parameters.emplace_back(bytes, bytes + parameter_sizes[i]);
  }
  launches.push_back(launch);
  put([launch, this] {
    if (!is_handle(launch.function, "module")) {
      violate("ran a kernel that was unloaded");
      return;
    }
    if (kernel) kernel(launch);
  });
  return 0;
}
inline int CudaStandIn::launch_kernel(Function function, unsigned grid,
                                      unsigned, unsigned, unsigned block,
                                      unsigned, unsigned, unsigned,
                                      Stream stream, void** parameters,
                                      void**) {
  return put_launch({function, grid, block, false, {}}, stream, parameters);
}
inline int CudaStandIn::launch_cooperative(Function function, unsigned grid,
                                           unsigned, unsigned, unsigned block,
                                           unsigned, unsigned, unsigned,
                                           Stream stream, void** parameters) {
  if (!cooperative) return violate("a cooperative launch");
  if (int(grid) > multiprocessors * resident) {
    return fuse::cuda::cooperative_launch_too_large;
  }
  return put_launch({function, grid, block, true, {}}, stream, parameters);
}
inline int CudaStandIn::occupancy_blocks(int* out, Function, int, std::size_t) {
  *out = resident;
  return 0;
}
inline int CudaStandIn::get_error_name(Result code, const char** text) {
  static const std::map<int, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {999, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(code);
  if (found == names.end()) return fuse::cuda::invalid_value;
  *text = found->second;
  return 0;
}
inline int CudaStandIn::get_error_string(Result code, const char** text) {
  if (code != fuse::cuda::illegal_address) return fuse::cuda::invalid_value;
  *text = "an illegal memory access was encountered";
  return 0;
}

}  // namespace testing
