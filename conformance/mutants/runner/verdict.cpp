#include "verdict.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace mutants {
namespace {

namespace fs = std::filesystem;

// Tests of many rules that take little time: a mutant breaks its own rule and not these.
constexpr const char* bystanders[] = {"CON_1_port_zero_takes_a_free_port_and_tells_it",
                                      "CON_4_private_data_arrives_exactly_with_connect_and_accept",
                                      "CON_2_a_request_is_answered_once",
                                      "MEM_1_length_zero_is_invalid",
                                      "MEM_2_segments_of_no_region_are_refused_at_post",
                                      "MEM_3_a_malformed_or_altered_key_is_refused",
                                      "OPS_6_inline_from_a_region_and_in_pieces",
                                      "OPS_8_zero_length_one_sided_operations_change_nothing",
                                      "ERR_2_abort_completes_everything_once_on_both_ends",
                                      "RCQ_1_its_limits_are_its_own",
                                      "PRG_6_the_attributes_tell_the_modes",
                                      "THR_2_the_thread_mode_is_what_was_asked_for",
                                      "SEC_3_the_fabric_says_whom_it_trusts"};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "OPS-1" -> "OPS_1_"
std::string prefix_of(std::string rule) {
  std::replace(rule.begin(), rule.end(), '-', '_');
  return rule + '_';
}

bool is_target(const Mutant& mutant, const std::string& test) {
  return test.starts_with(prefix_of(mutant.rule)) && holds(test, mutant.tests);
}

bool stands_by(const Mutant& mutant, const std::string& test) {
  if (is_target(mutant, test)) return false;
  return std::none_of(mutant.spares.begin(), mutant.spares.end(),
                      [&](const std::string& spared) { return holds(test, spared); });
}

std::string filter_for(const Mutant& mutant) {
  std::string filter = "*." + prefix_of(mutant.rule) + "*" + mutant.tests + "*";
  for (const char* test : bystanders) {
    if (stands_by(mutant, test)) filter += std::string(":*.") + test;
  }
  return filter;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// `settings`: variables beside those of this process, which stay as they are: other threads run mutants too.
int run(const std::vector<std::string>& command, const std::vector<std::string>& settings,
        const std::string& output) {
  const std::vector<char*> arguments = pointers_to(command);
  std::vector<std::string> variables = settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const std::string& setting) { return setting.starts_with(name); }))
      variables.emplace_back(text);
  }
  const std::vector<char*> environment = pointers_to(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!output.empty()) {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  pid_t child = -1;
  const int error = posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot run " + command[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The first line of a failure that is a check's, and says what it must; empty when there is none.
std::string convincing_line(const std::string& detail, const std::string& says) {
  for (const char* accident :
       {"ended by signal", "exited with status", "still running after", "could not exit"}) {
    if (holds(detail, accident)) return {};
  }
  if (!holds(detail, says)) return {};
  return detail.substr(0, detail.find('\n'));
}

}  // namespace

Verdict judge(const Mutant& mutant, const Tools& tools) {
  const std::string struck = tools.folder + "/" + mutant.name + ".struck";
  const std::string results = tools.folder + "/" + mutant.name + ".json";
  const std::string output = tools.folder + "/" + mutant.name + ".txt";
  fs::remove(struck);
  fs::remove(results);
  std::vector<std::string> settings{"MUTANT_STRUCK_FILE=" + struck};
  std::vector<std::string> command{tools.suite, "--quick", "--seed",
                                   "1",         "--jobs",  "3",
                                   "--json",    results,   "--gtest_filter=" + filter_for(mutant)};
  if (mutant.beneath) {
    settings.push_back("MUTANT_BENEATH=" + mutant.name);
    settings.push_back("LD_PRELOAD=" + tools.beneath);
    command.insert(command.end(), {"--provider", "tcp"});
  } else {
    command.insert(command.end(), {"--plugin", tools.plugin, "--provider", "mutant:" + mutant.name + "+tcp"});
  }
  (void)run(command, settings, tools.shows ? "" : output);

  Verdict verdict;
  std::ifstream file(results);
  if (!file) {
    verdict.why = "the suite left no results; its output is in " + output;
    return verdict;
  }
  std::string accident;
  int targets = 0;
  int passed_by = 0;
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto& result : all.at("results")) {
    const std::string test = result.at("test");
    const bool passed = result.at("outcome") == "pass";
    const std::string detail = result.at("detail");
    if (!is_target(mutant, test)) {
      if (passed) {
        ++passed_by;
      } else {
        verdict.why = "the bystander " + test + " failed as well: " + detail;
        return verdict;
      }
      continue;
    }
    ++targets;
    if (passed) continue;
    const std::string line = convincing_line(detail, mutant.says);
    if (line.empty()) accident = test + ": " + detail;
    if (!line.empty() && verdict.by.empty()) verdict.by = test;
  }
  constexpr int enough = 7;
  if (!fs::exists(struck)) {
    verdict.why = "it never struck";
  } else if (targets == 0) {
    verdict.why = "no test of " + mutant.rule + " was run";
  } else if (passed_by < enough) {
    verdict.why = "only " + std::to_string(passed_by) + " bystanders were run";
  } else if (verdict.by.empty()) {
    verdict.why = accident.empty() ? "every test of " + mutant.rule + " passed: the suite has a hole"
                                   : "the failure is not the one it must be: " + accident;
  } else {
    verdict.caught = true;
  }
  return verdict;
}

}  // namespace mutants
