// What can be done about something that does not run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace info {

// For a plug-in that could not be loaded, from the reason given: the Debian package that holds the library it
// lacks, when that is it. Empty when the reason says all there is to say.
[[nodiscard]] std::string advice_for_loading(std::string_view reason);

// The providers of this build that have Debian packages of their own, and the package of one.
[[nodiscard]] std::vector<std::string> packaged_providers();
[[nodiscard]] std::string package_of(std::string_view provider);

}  // namespace info
