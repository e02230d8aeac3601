// What an open context is and can do, and what an endpoint negotiated. Every limit is true: at the limit
// works, one past it is refused at post (OPS-9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// Who calls into a context (THR-1, THR-2).
enum class ThreadMode : std::uint8_t {
  safe,   // every object from any thread at once
  single  // one application thread at a time; calls cost no locked instruction
};

// Who makes things move while the program is away (PRG-1, PRG-2, PRG-6).
enum class ProgressMode : std::uint8_t {
  automatic,   // a helper thread steps in after about 10 ms
  when_called  // nobody: things move only inside calls, CompletionQueue::wait included
};

// Who must be trusted because the fabric's own wire code trusts them (SEC-3).
enum class Trust : std::uint8_t { nobody, connected_peers, same_user, whoever_reaches_the_port };

// Among whom atomics on a region are atomic (OPS-5).
enum class AtomicScope : std::uint8_t {
  none,           // the region does not grant atomics
  device,         // among operations that come through the same device
  device_and_cpu  // also with the target CPU's own atomic instructions
};

// A permitted deviation from the contract (the closed list at the end of contract.md).
struct Deviation {
  std::string rule;     // "MEM-7"
  std::string reason;   // with its evidence
  std::string instead;  // what holds instead
};

// Limits of one endpoint, or the largest a context offers. Through an endpoint they are the negotiated ones,
// the smaller of both sides (CON-8); receives posted before stay. With a shared receive queue receive_depth
// is the queue's depth.
struct Limits {
  std::uint64_t max_message = 0;            // bytes of a send or write_with_immediate; at least 1 MiB
  std::uint64_t max_transfer = 0;           // bytes of a plain write or read; at least 2^40
  std::uint32_t max_inline = 0;             // bytes; at least 32
  std::uint32_t max_segments = 0;           // per request; at least 4
  std::uint32_t send_depth = 0;             // outstanding send-side operations
  std::uint32_t receive_depth = 0;          // posted receives
  std::uint32_t max_outstanding_reads = 0;  // reads and atomics in flight; further ones wait by themselves
  std::uint64_t unexpected_bytes = 0;       // window for messages without a posted receive (OPS-3)
};

// Context::attributes().
struct Attributes {
  std::string provider;          // as in WEFT_PROVIDER, decorators in front
  std::string provider_version;  // the provider's, with the fabric library's
  std::string fabric;            // what lies beneath
  std::string device;            // device or interface
  std::string local_address;     // the address the device is bound to, or the only one it has; else "any"
  bool met_there_only = false;   // peers come in at local_address alone; elsewhere nobody can listen (CON-1)
  std::uint64_t segment_size = 0;  // the fabric's own unit, in bytes (MTU or largest frame)
  ThreadMode thread_mode = ThreadMode::safe;
  ProgressMode progress_mode = ProgressMode::automatic;
  Trust trust = Trust::nobody;
  std::string trust_text;  // what is not authenticated or encrypted, said plainly
  AtomicScope atomic_scope = AtomicScope::device;
  Limits limits;                       // the largest that can be asked for
  std::uint32_t max_private_data = 0;  // bytes with connect, accept and reject; at least 1,024 (CON-4)
  std::uint32_t max_key_size = 0;      // bytes of an exported key (MEM-3)
  std::vector<Deviation> deviations;
};

// A named event count of a provider or the core, for tests and tuning ("system_calls_send", "doorbells").
struct Counter {
  std::string name;
  std::uint64_t value = 0;
};

}  // namespace weft
