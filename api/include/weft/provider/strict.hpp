// What a provider can offer beside its Context, so that the decorator `strict` can make it as hard on
// programs as the contract allows. Optional: strict looks for it by dynamic_cast and says in its opening line
// what the provider beneath lacks.
#pragma once

#include "weft/export.hpp"

namespace weft::provider {

class WEFT_API StrictSwitches {
 public:
  virtual ~StrictSwitches() = default;

  // Each answers true when it holds from now on, for every endpoint prepared later; it is never turned off.
  //
  // A send, and a write with immediate, completes only when its receive was there (OPS-3).
  virtual bool complete_sends_when_matched() noexcept = 0;
  // A write stays at the initiator until something ordered is posted behind it, less than 100 ms (PRG-5).
  virtual bool hold_writes() noexcept = 0;
};

}  // namespace weft::provider
