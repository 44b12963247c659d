#include "bullet/exchange_numbers.h"

#include <cstring>
#include <stdexcept>

#include "assertions.h"

namespace lapjoint {

std::vector<std::vector<std::int32_t>> exchange_numbers(Mailboxes& mailboxes, const std::vector<std::int32_t>& own) {
  std::vector<std::vector<std::int32_t>> all(mailboxes.worker_count());
  const auto count = static_cast<std::int32_t>(own.size());
  const std::size_t bytes = own.size() * sizeof(std::int32_t);
  if (sizeof count + bytes > mailboxes.room())
    throw std::runtime_error("what workers tell each other about bodies is more than a message holds");
  for (int worker = 0; worker < mailboxes.worker_count(); ++worker) {
    if (worker == mailboxes.self()) continue;
    auto* out = static_cast<std::byte*>(mailboxes.outgoing(worker));
    std::memcpy(out, &count, sizeof count);
    std::memcpy(out + sizeof count, own.data(), bytes);
    mailboxes.send(worker, sizeof count + bytes);
  }
  for (int worker = 0; worker < mailboxes.worker_count(); ++worker) {
    if (worker == mailboxes.self()) {
      all[worker] = own;
      continue;
    }
    const auto* in = static_cast<const std::byte*>(mailboxes.receive_any(worker));
    std::int32_t size;
    std::memcpy(&size, in, sizeof size);
    LAPJOINT_ASSERT(size >= 0 && sizeof size + size * sizeof(std::int32_t) <= mailboxes.room());
    all[worker].resize(size);
    std::memcpy(all[worker].data(), in + sizeof size, size * sizeof(std::int32_t));
  }
  return all;
}

}  // namespace lapjoint
