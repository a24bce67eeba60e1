#include "options.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace fuse {
namespace {

constexpr std::int64_t most_threads = 1024;

std::string range_text(std::int64_t low, std::int64_t high) {
  return "a whole number from " + std::to_string(low) + " to " +
         std::to_string(high);
}

std::int64_t parse_number(const std::string& name, const std::string& text,
                          std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const bool is_number = !text.empty() && result.ptr == end &&
                         result.ec != std::errc::invalid_argument;
  if (!is_number) {
    throw UsageError("--" + name + ": '" + text +
                     "' is no whole number; give " + range_text(low, high));
  }
  if (result.ec != std::errc() || value < low || value > high) {
    throw UsageError("--" + name + ": " + text + " is out of range; give " +
                     range_text(low, high));
  }
  return value;
}

/// How many letters must be changed, added or removed to get from a to b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string usage_line(std::string option, const std::string& help) {
  option.resize(std::max<std::size_t>(option.size() + 2, 22), ' ');
  return std::string("  ").append(option).append(help).append("\n");
}

std::string default_text(const NumberOption& number) {
  return number.help + " (default " + std::to_string(number.value) + ", " +
         std::to_string(number.low) + " to " + std::to_string(number.high) +
         ")";
}

}  // namespace

std::int64_t Options::operator[](const std::string& name) const {
  for (const NumberOption& number : numbers_) {
    if (number.name == name) return number.value;
  }
  throw Error("this recipe has no option '" + name +
              "'; declare it where run_recipe is called");
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> all{"device", "threads", "json", "record", "help"};
  for (const NumberOption& number : numbers_) all.push_back(number.name);
  return all;
}

bool Options::knows(const std::string& name) const {
  const std::vector<std::string> all = names();
  return std::find(all.begin(), all.end(), name) != all.end();
}

void Options::reject(const std::string& name) const {
  const std::vector<std::string> all = names();
  const auto nearest = std::min_element(
      all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  const bool close = edit_distance(name, *nearest) <= 1 + name.size() / 3;
  throw UsageError("unknown option '--" + name + "'" +
                   (close ? "; did you mean '--" + *nearest + "'?"
                          : "; --help lists all options"));
}

void Options::set_device(const std::string& value) {
  if (value == "auto" || value == "cpu") return;
  const std::string cuda = "cuda";
  const bool has_index =
      value.size() > 5 && value.starts_with("cuda:") &&
      value.find_first_not_of("0123456789", 5) == std::string::npos;
  if (value == cuda || has_index) {
    throw DeviceError("--device " + value +
                      ": this build has no CUDA backend; use --device cpu");
  }
  throw UsageError("--device: '" + value +
                   "' is no device; give auto, cpu, cuda or cuda:N");
}

void Options::set(const std::string& name, const std::string& value) {
  if (name == "device") return set_device(value);
  if (name == "threads") {
    threads_ = int(parse_number(name, value, 1, most_threads));
    return;
  }
  if (name == "json" || name == "record") {
    if (value.empty()) throw UsageError("--" + name + " needs a file name");
    (name == "json" ? json_file_ : record_file_) = value;
    return;
  }
  for (NumberOption& number : numbers_) {
    if (number.name != name) continue;
    number.value = parse_number(name, value, number.low, number.high);
  }
}

/// Reads the option at argv[0] and returns how many words it took.
int Options::read(int count, const char* const* argv) {
  const std::string word = argv[0];
  if (word == "-h" || word == "--help") {
    help_wanted_ = true;
    return 1;
  }
  if (word.size() < 3 || !word.starts_with("--")) {
    throw UsageError("unexpected argument '" + word +
                     "'; options begin with --, and --help lists them");
  }
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(2, equals - 2);
  if (!knows(name)) reject(name);
  if (name == "help") throw UsageError("--help takes no value");
  if (equals != std::string::npos) {
    set(name, word.substr(equals + 1));
    return 1;
  }
  if (count < 2 || std::string(argv[1]).starts_with("--")) {
    throw UsageError("--" + name + " needs a value; --help says which");
  }
  set(name, argv[1]);
  return 2;
}

Options parse_options(int argc, const char* const* argv,
                      std::vector<NumberOption> numbers) {
  Options options(std::move(numbers));
  for (int i = 1; i < argc;) i += options.read(argc - i, argv + i);
  return options;
}

std::string usage_text(const std::string& program,
                       const std::vector<NumberOption>& numbers) {
  std::string text = "Usage: " + program + " [options]\n\nOptions:\n";
  for (const NumberOption& number : numbers) {
    text += usage_line("--" + number.name + " N", default_text(number));
  }
  text += usage_line("--device D",
                     "auto, cpu, cuda or cuda:N (default auto: the best there "
                     "is)");
  text += usage_line("--threads N",
                     "threads to use, 1 to " + std::to_string(most_threads) +
                         " (default FUSEBOOK_THREADS, else all CPUs)");
  text += usage_line("--json FILE", "write the results to FILE");
  text +=
      usage_line("--record FILE", "write the output, step by step, to FILE");
  text += usage_line("--help", "show this text and stop");
  return text +
         "\nExit codes:\n"
         "  0    success\n"
         "  1    the run failed\n"
         "  2    the command line or an environment variable is wrong\n"
         "  3    the device is not available\n"
         "  130  interrupted\n";
}

}  // namespace fuse
