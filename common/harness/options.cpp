#include "fusebook/harness/options.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "fusebook/device/device.h"
#include "fusebook/support/closest_match.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

constexpr std::int64_t most_threads = 1024;
constexpr std::size_t help_column = 24;
constexpr std::size_t most_columns = 78;

std::string range_text(std::int64_t low, std::int64_t high) {
  return fmt::format("an integer from {} to {}", low, high);
}

std::int64_t parse_number(const std::string& name, const std::string& text,
                          std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const bool is_number = !text.empty() && result.ptr == end &&
                         result.ec != std::errc::invalid_argument;
  if (!is_number) {
    throw UsageError("--" + name + ": expected " + range_text(low, high) +
                     ", not '" + text + "'");
  }
  if (result.ec != std::errc() || value < low || value > high) {
    throw UsageError("--" + name + ": " + text + " is out of range; expected " +
                     range_text(low, high));
  }
  return value;
}

std::string suggestion(const std::string& meant, const std::string& otherwise) {
  return "; " + (meant.empty() ? otherwise : "did you mean '" + meant + "'?");
}

std::string parse_choice(const ChoiceOption& option, const std::string& text) {
  const auto& choices = option.choices;
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) {
    return text;
  }
  throw UsageError("--" + option.name + ": '" + text + "' is not one of " +
                   join(choices) +
                   suggestion(nearest(text, choices), "choose one of these"));
}

Error undeclared(const std::string& name) {
  return Error("this recipe has no option '" + name +
               "'; declare it where run_recipe is called");
}

std::string default_text(const NumberOption& number) {
  return fmt::format("{} (default {}, {} to {})", number.help, number.value,
                     number.low, number.high);
}

// The names in lines of their own, as many in each as fit.
std::string default_text(const ChoiceOption& choice) {
  std::string text = choice.help + " (default " + choice.value + "), one of\n";
  std::size_t width = 0;
  for (std::size_t i = 0; i < choice.choices.size(); ++i) {
    const bool last = i + 1 == choice.choices.size();
    const std::string word = choice.choices[i] + (last ? "" : ",");
    const bool fits = width + 1 + word.size() <= most_columns - help_column;
    if (width > 0) text += fits ? " " : "\n";
    width = width > 0 && fits ? width + 1 + word.size() : word.size();
    text += word;
  }
  return text;
}

std::string parse_device_option(const std::string& value) {
  if (value == "auto") return value;
  try {
    return to_string(parse_device(value));
  } catch (const UsageError&) {
    throw UsageError("--device: '" + value +
                     "' is not a device; use auto, cpu, cuda, cuda:N or "
                     "cuda-sim");
  }
}

// An option with a value, which `take` reads. The last of several counts.
template <class Take>
void add_option(CLI::App& app, const std::string& name, const char* value,
                const std::string& help, Take take) {
  const auto read = [name, take](const std::string& text) {
    if (text.empty()) {
      throw UsageError("--" + name + " needs a value; see --help");
    }
    take(text);
  };
  // What may be missing for the library is not taken from the next option.
  app.add_option_function<std::string>("--" + name, read, help)
      ->option_text(value)
      ->expected(0, 1)
      ->take_last();
}

// What the library found no option for.
[[noreturn]] void refuse(const std::string& word, const CLI::App& app) {
  if (word.size() < 3 || !word.starts_with("--")) {
    throw UsageError("unexpected argument '" + word +
                     "'; options begin with --; see --help");
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    known.push_back("--" + option->get_lnames().front());
  }
  const std::string name = word.substr(0, word.find('='));
  throw UsageError(
      "unknown option '" + name + "'" +
      suggestion(nearest(name, known), "--help lists all options"));
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

/// What a recipe takes, declared to the library, whose parser writes to `options`.
class CommandLine {
 public:
  CommandLine(const std::string& program, Options& options);

  CLI::App app;
};

CommandLine::CommandLine(const std::string& program, Options& options)
    : app("", program) {
  app.set_help_flag();
  app.get_formatter()->column_width(help_column);
  app.get_formatter()->label("OPTIONS", "options");
  for (NumberOption& number : options.own_.numbers) {
    add_option(app, number.name, "N", default_text(number),
               [&number](const std::string& text) {
                 number.value =
                     parse_number(number.name, text, number.low, number.high);
               });
  }
  for (ChoiceOption& choice : options.own_.choices) {
    add_option(app, choice.name, "NAME", default_text(choice),
               [&choice](const std::string& text) {
                 choice.value = parse_choice(choice, text);
               });
  }
  add_option(
      app, "device", "D",
      "auto, cpu, cuda, cuda:N or cuda-sim (default auto: a GPU if there "
      "is one)",
      [&options](const std::string& text) {
        options.device_ = parse_device_option(text);
      });
  add_option(
      app, "threads", "N",
      fmt::format(
          "threads to use, 1 to {} (default FUSEBOOK_THREADS, else all CPUs)",
          most_threads),
      [&options](const std::string& text) {
        options.threads_ = int(parse_number("threads", text, 1, most_threads));
      });
  add_option(
      app, "json", "FILE", "write the results to FILE",
      [&options](const std::string& text) { options.json_file_ = text; });
  add_option(
      app, "record", "FILE", "write the output, step by step, to FILE",
      [&options](const std::string& text) { options.record_file_ = text; });
  app.add_flag("--help,-h", options.help_wanted_, "show this text and exit")
      ->disable_flag_override();
}

Options parse_options(int argc, const char* const* argv, OptionSet own) {
  Options options(std::move(own));
  CommandLine line("", options);
  CLI::App& app = line.app;
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch&) {
    throw UsageError("--help takes no value");
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) refuse(extras.front(), app);
  return options;
}

std::string usage_text(const std::string& program, const OptionSet& own) {
  Options options(own);
  const CommandLine line(program, options);
  return line.app.help() +
         "Exit codes:\n"
         "  0    success\n"
         "  1    the run failed\n"
         "  2    the command line or an environment variable is wrong\n"
         "  3    the device is not available\n"
         "  130  interrupted\n";
}

}  // namespace fuse
