#include <cstring>
#include <vector>

#include "kernel.h"
#include "tile_program.h"

namespace fuse {
namespace {

// Values of the uniform and per-tensor stages, one a node, all doubles.
using Values = std::vector<double>;

double read_scalar(DType dtype, const void* address) {
  if (dtype == DType::float64) {
    double value = 0;
    std::memcpy(&value, address, sizeof(value));
    return value;
  }
  float value = 0;
  std::memcpy(&value, address, sizeof(value));
  return double(value);
}

void write_scalar(DType dtype, void* address, double value) {
  if (dtype == DType::float64) {
    std::memcpy(address, &value, sizeof(value));
    return;
  }
  const auto rounded = float(value);
  std::memcpy(address, &rounded, sizeof(rounded));
}

double evaluate(const BodyNode& node, const Values& values) {
  if (node.op == OpCode::cast) {
    const double value = values[std::size_t(node.in[0])];
    return node.dtype == DType::float32 ? double(float(value)) : value;
  }
  const void* in[4] = {};
  for (int k = 0; k < node.arity; ++k) {
    in[k] = &values[std::size_t(node.in[k])];
  }
  double result = 0;
  loops().ops[std::size_t(DType::float64)][std::size_t(node.op)]
             [(1U << node.arity) - 1](&result, in, 1);
  return result;
}

// Runs the rows of one body; one for each thread and launch.
class BodyRunner {
 public:
  BodyRunner(const Body& body, const TileProgram& tiles, const Launch& launch)
      : body_(body),
        tiles_(tiles),
        launch_(launch),
        values_(body.nodes.size()),
        scalars_(tiles.scalars.size()),
        buffers_(std::size_t(tiles.buffers * tile_size)) {
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      const BodyNode& node = body.nodes[i];
      if (node.op == OpCode::constant) {
        values_[i] = node.value;
      } else if (node.rate == Rate::uniform) {
        values_[i] = node.op == OpCode::argument ? launch.args[node.index]
                                                 : evaluate(node, values_);
      }
    }
  }

  void run(const Row& row, i64 begin, i64 end, bool whole) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    const i64 step = tiles_.buffers == 0 ? end - begin : tile_size;
    for (i64 i = begin; i < end; i += step) {
      run_tile(pointers, i, std::min(step, end - i));
    }
    if (whole) store_entry(pointers);
  }

  void finish(const Row& row) {
    void* const* pointers = launch_.pointers + row.pointers;
    prepare(row, pointers);
    store_entry(pointers);
  }

 private:
  // The per-tensor stage.
  void prepare(const Row& row, void* const* pointers) {
    const double* columns =
        launch_.columns + row.instance * launch_.column_count;
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      const BodyNode& node = body_.nodes[i];
      if (node.rate != Rate::entry) continue;
      if (node.op == OpCode::argument) {
        values_[i] = columns[node.index];
      } else if (node.op == OpCode::load) {
        const DType dtype = body_.slots[std::size_t(node.index)].dtype;
        values_[i] = read_scalar(dtype, pointers[node.index]);
      } else {
        values_[i] = evaluate(node, values_);
      }
    }
    for (std::size_t k = 0; k < tiles_.scalars.size(); ++k) {
      const TileScalar& scalar = tiles_.scalars[k];
      write_scalar(scalar.dtype, &scalars_[k],
                   values_[std::size_t(scalar.value)]);
    }
  }

  void* address(Place place, DType dtype, void* const* pointers, i64 first) {
    if (place.kind == Place::Kind::scalar) {
      return &scalars_[std::size_t(place.index)];
    }
    if (place.kind == Place::Kind::buffer) {
      return &buffers_[std::size_t(place.index * tile_size)];
    }
    return static_cast<char*>(pointers[place.index]) +
           first * i64(size_of(dtype));
  }

  void* operand_address(Place place, void* const* pointers, i64 first) {
    const DType dtype = place.kind == Place::Kind::memory
                            ? body_.slots[std::size_t(place.index)].dtype
                            : DType::float64;
    return address(place, dtype, pointers, first);
  }

  void run_tile(void* const* pointers, i64 first, i64 n) {
    for (const TileStep& step : tiles_.steps) {
      const void* in[4] = {};
      for (int k = 0; k < step.arity; ++k) {
        in[k] = operand_address(step.in[k], pointers, first);
      }
      step.loop(operand_address(step.out, pointers, first), in, n);
    }
    for (const TileCopy& copy : tiles_.copies) {
      const DType dtype = body_.slots[std::size_t(copy.slot)].dtype;
      void* to =
          operand_address({Place::Kind::memory, copy.slot}, pointers, first);
      std::memcpy(to, &buffers_[std::size_t(copy.buffer * tile_size)],
                  std::size_t(n) * size_of(dtype));
    }
  }

  void store_entry(void* const* pointers) {
    for (const Store& store : body_.stores) {
      const BodySlot& slot = body_.slots[std::size_t(store.slot)];
      if (slot.rate != Rate::entry) continue;
      write_scalar(slot.dtype, pointers[store.slot],
                   values_[std::size_t(store.value)]);
    }
  }

  const Body& body_;
  const TileProgram& tiles_;
  const Launch& launch_;
  Values values_;
  std::vector<double> scalars_;  // each holds one value of its dtype
  std::vector<double> buffers_;  // as many tiles, sized for the wider dtype
};

class Interpreter final : public CpuKernel {
 public:
  explicit Interpreter(const Plan& plan) : bodies_(plan.bodies) {
    for (const Body& body : bodies_) {
      direct_.push_back(make_tile_program(body, true));
      careful_.push_back(make_tile_program(body, false));
    }
  }

 protected:
  void run(const Table& table, const Part& part) const override {
    const Launch launch = table.launch();
    std::vector<BodyRunner> runners = make_runners(table, launch);
    device::for_each_row(
        launch, part, [&](const Row& row, i64 begin, i64 end, bool whole) {
          runners[std::size_t(row.body)].run(row, begin, end, whole);
        });
  }

  void finish(const Table& table, i64 row) const override {
    const Launch launch = table.launch();
    const Row& bound = launch.rows[row];
    make_runners(table, launch)[std::size_t(bound.body)].finish(bound);
  }

 private:
  std::vector<BodyRunner> make_runners(const Table& table,
                                       const Launch& launch) const {
    const auto& tiles = table.coincident() ? careful_ : direct_;
    std::vector<BodyRunner> runners;
    runners.reserve(bodies_.size());
    for (std::size_t b = 0; b < bodies_.size(); ++b) {
      runners.emplace_back(bodies_[b], tiles[b], launch);
    }
    return runners;
  }

  std::vector<Body> bodies_;
  std::vector<TileProgram> direct_;
  std::vector<TileProgram> careful_;
};

}  // namespace

std::shared_ptr<const Kernel> make_interpreter(const Plan& plan) {
  return std::make_shared<Interpreter>(plan);
}

}  // namespace fuse
