#include "bench_ranks/report.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "fusebook/harness/provenance.h"
#include "fusebook/json/json.h"

namespace fuse::bench {
namespace {

constexpr int micro_gradients_a_rank = 4;
constexpr int most_ranks = 4096;

const Case& case_named(const std::string& name) {
  return *std::find_if(all_cases().begin(), all_cases().end(),
                       [&](const Case& each) { return each.name == name; });
}

Json json_of(const RankTraffic& sent) {
  return {{"gradients", sent.gradients}, {"parameters", sent.parameters},
          {"sums", sent.sums},           {"agreement", sent.agreement},
          {"calls", sent.calls},         {"exchanges", sent.exchanges},
          {"messages", sent.messages}};
}

Json quantity(double value, const char* unit) {
  return {{"value", json_number(value)}, {"unit", unit}};
}

Json constants_json(const Report& report) {
  return {
      {"call_us", quantity(report.link.call_us, "us")},
      {"exchange_us", quantity(report.link.exchange_us, "us")},
      {"link_gb_per_s", quantity(1e-3 / report.link.us_per_byte, "GB/s")},
      {"memory_gb_per_s", quantity(1e-3 * report.memory_bytes_per_us, "GB/s")},
      {"exchange_alone_us", quantity(report.overlap.exchange_us, "us")},
      {"work_alone_us", quantity(report.overlap.work_us, "us")},
      {"exchange_beside_work_us", quantity(report.overlap.both_us, "us")}};
}

Json links_json(const Report& report) {
  Json list = Json::array();
  for (const LinkTimes& link : report.links) {
    for (const ExchangeTime& one : link.exchanges) {
      list.push_back({{"ranks", link.ranks},
                      {"pattern", one.pattern},
                      {"bytes", one.bytes},
                      {"us", json_number(one.us)},
                      {"model_us", json_number(report.link.exchange(
                                       one.bytes, link.ranks))}});
    }
  }
  return list;
}

Json calls_json(const Report& report) {
  Json list = Json::array();
  for (const LinkTimes& link : report.links) {
    list.push_back({{"ranks", link.ranks}, {"us", json_number(link.call_us)}});
  }
  return list;
}

Json steps_json(const Report& report) {
  Json list = Json::array();
  for (const StepTime& step : report.steps) {
    const std::int64_t gradients = step.plan.gradients(step.ranks);
    list.push_back({{"ranks", step.ranks},
                    {"mode", name_of(step.plan)},
                    {"us", json_number(step.us)},
                    {"limit_us", json_number(step.limit_us)},
                    {"owned", step.owned},
                    {"gradients", gradients},
                    {"bytes_per_element", bytes_per_element(gradients)},
                    {"sent", json_of(step.sent)}});
  }
  return list;
}

Json plan_json(const Report& report) {
  Json list = Json::array();
  for (const Planned& each : plan_of(report)) {
    list.push_back({{"case", each.of_case},
                    {"ranks", each.ranks},
                    {"mode", name_of(each.plan)},
                    {"owned", each.expected.owned},
                    {"gradients", each.expected.gradients},
                    {"transport_us", json_number(each.expected.transport_us)},
                    {"own_us", json_number(each.expected.own_us)},
                    {"sent", json_of(each.expected.sent)}});
  }
  return list;
}

double mega(std::int64_t bytes) { return double(bytes) / 1e6; }

}  // namespace

std::vector<PlannedStep> step_kinds(int ranks) {
  const std::int64_t all = std::int64_t(micro_gradients_a_rank) * ranks;
  return {{.micro_gradients = all}, {.micro_gradients = all, .adds_up = true}};
}

const char* name_of(const PlannedStep& plan) {
  return plan.adds_up ? "fast" : "exact";
}

const Case& measured_case() { return case_named("10 x 1024 x 1024"); }
const Case& planned_case() { return case_named("GPT-2 small"); }

std::vector<Planned> plan_of(const Report& report) {
  std::vector<Planned> all;
  for (const Case* const wanted : {&measured_case(), &planned_case()}) {
    for (int ranks = 1; ranks <= most_ranks; ranks *= 2) {
      for (const PlannedStep& plan : step_kinds(ranks)) {
        all.push_back({wanted->name, ranks, plan,
                       expected_step(*wanted, plan, ranks, report.link,
                                     report.memory_bytes_per_us)});
      }
    }
  }
  return all;
}

void print(const Report& report) {
  std::printf(
      "model, fitted on %d ranks: %.3f us a message of a call, %.3f us a "
      "message "
      "of an exchange, %.3f GB/s; memory %.3f GB/s a rank\n",
      report.fitted_at, report.link.call_us, report.link.exchange_us,
      1e-3 / report.link.us_per_byte, 1e-3 * report.memory_bytes_per_us);
  std::printf(
      "an exchange %.0f us, computing %.0f us, computing while it travels %.0f "
      "us\n",
      report.overlap.exchange_us, report.overlap.work_us,
      report.overlap.both_us);
  for (const LinkTimes& link : report.links) {
    std::printf("%d ranks, a call: %.2f us\n", link.ranks, link.call_us);
    for (const ExchangeTime& one : link.exchanges) {
      std::printf("  %-10s %10lld bytes %12.2f us, model %12.2f us\n",
                  one.pattern.c_str(), static_cast<long long>(one.bytes),
                  one.us, report.link.exchange(one.bytes, link.ranks));
    }
  }
  for (const StepTime& step : report.steps) {
    std::printf(
        "%d ranks, %s: step %.0f us, limit of %lld bytes an element %.0f us; "
        "sent as planned: %.1f MB of gradients, %.1f MB of parameters\n",
        step.ranks, name_of(step.plan), step.us,
        static_cast<long long>(
            bytes_per_element(step.plan.gradients(step.ranks))),
        step.limit_us, mega(step.sent.gradients), mega(step.sent.parameters));
  }
  for (const Planned& each : plan_of(report)) {
    std::printf("%s, %4d ranks, %-5s: transport %.0f us, own step %.0f us\n",
                each.of_case.c_str(), each.ranks, name_of(each.plan),
                each.expected.transport_us, each.expected.own_us);
  }
}

std::string json_of(const Report& report) {
  const Provenance here = current_provenance();
  return json_text({{"device", here.device},
                    {"threads", here.threads},
                    {"compiler", here.compiler},
                    {"system", here.system},
                    {"date", here.date},
                    {"mpi", report.mpi},
                    {"cores", std::thread::hardware_concurrency()},
                    {"ranks", report.ranks},
                    {"fitted_at", report.fitted_at},
                    {"values", constants_json(report)},
                    {"calls", calls_json(report)},
                    {"exchanges", links_json(report)},
                    {"steps", steps_json(report)},
                    {"plan", plan_json(report)}});
}

}  // namespace fuse::bench
