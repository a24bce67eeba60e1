#include "fusebook/harness/options.h"

#include <algorithm>
#include <charconv>

#include "fusebook/device/device.h"
#include "fusebook/support/closest_match.h"

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

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string suggestion(const std::string& meant, const std::string& otherwise) {
  return "; " + (meant.empty() ? otherwise : "did you mean '" + meant + "'?");
}

std::string parse_choice(const ChoiceOption& option, const std::string& text) {
  const auto& choices = option.choices;
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
    return text;
  }
  throw UsageError("--" + option.name + ": '" + text + "' is none of " +
                   joined(choices) +
                   suggestion(nearest(text, choices), "give one of these"));
}

Error undeclared(const std::string& name) {
  return Error("this recipe has no option '" + name +
               "'; declare it where run_recipe is called");
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

// The names in lines of their own, as many in each as fit.
std::string choice_lines(const ChoiceOption& choice) {
  std::string text =
      usage_line("--" + choice.name + " NAME",
                 choice.help + " (default " + choice.value + "), one of");
  std::string line;
  for (std::size_t i = 0; i < choice.choices.size(); ++i) {
    const bool last = i + 1 == choice.choices.size();
    const std::string word = choice.choices[i] + (last ? "" : ",");
    if (line.size() + 1 + word.size() > 54) {
      text += std::string(24, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return text + std::string(24, ' ') + line + "\n";
}

}  // namespace

std::int64_t Options::operator[](const std::string& name) const {
  for (const NumberOption& number : own_.numbers) {
    if (number.name == name) return number.value;
  }
  throw undeclared(name);
}

const std::string& Options::choice(const std::string& name) const {
  for (const ChoiceOption& choice : own_.choices) {
    if (choice.name == name) return choice.value;
  }
  throw undeclared(name);
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> all{"device", "threads", "json", "record", "help"};
  for (const NumberOption& number : own_.numbers) all.push_back(number.name);
  for (const ChoiceOption& choice : own_.choices) all.push_back(choice.name);
  return all;
}

bool Options::knows(const std::string& name) const {
  const std::vector<std::string> all = names();
  return std::find(all.begin(), all.end(), name) != all.end();
}

void Options::reject(const std::string& name) const {
  const std::string meant = nearest(name, names());
  throw UsageError("unknown option '--" + name + "'" +
                   suggestion(meant.empty() ? "" : "--" + meant,
                              "--help lists all options"));
}

void Options::set_device(const std::string& value) {
  if (value == "auto") {
    device_ = value;
    return;
  }
  try {
    device_ = to_string(parse_device(value));
  } catch (const UsageError&) {
    throw UsageError("--device: '" + value +
                     "' is no device; give auto, cpu, cuda, cuda:N or "
                     "cuda-sim");
  }
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
  for (NumberOption& number : own_.numbers) {
    if (number.name != name) continue;
    number.value = parse_number(name, value, number.low, number.high);
  }
  for (ChoiceOption& choice : own_.choices) {
    if (choice.name == name) choice.value = parse_choice(choice, value);
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

Options parse_options(int argc, const char* const* argv, OptionSet own) {
  Options options(std::move(own));
  for (int i = 1; i < argc;) i += options.read(argc - i, argv + i);
  return options;
}

std::string usage_text(const std::string& program, const OptionSet& own) {
  std::string text = "Usage: " + program + " [options]\n\nOptions:\n";
  for (const NumberOption& number : own.numbers) {
    text += usage_line("--" + number.name + " N", default_text(number));
  }
  for (const ChoiceOption& choice : own.choices) text += choice_lines(choice);
  text += usage_line("--device D",
                     "auto, cpu, cuda, cuda:N or cuda-sim (default auto: a GPU "
                     "if there is one)");
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
