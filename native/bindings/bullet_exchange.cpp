// Registers what workers exchange within a step.
#include "bindings/bullet.h"
#include "exchange/machine_links.h"

namespace lapjoint::bindings {

namespace {

// Wait for other workers, while other threads run Python. False: the step is abandoned.
template <typename Action>
bool unless_abandoned(Action&& action) {
  const nb::gil_scoped_release others;
  try {
    action();
  } catch (const StepAbandoned&) {
    return false;
  }
  return true;
}

void check_fit(const Output<std::uint8_t>& memory, int worker_count, std::size_t room) {
  if (memory.size() < Mailboxes::byte_count(worker_count, room))
    throw std::invalid_argument("mailboxes of " + std::to_string(worker_count) +
                                " workers do not fit into their memory");
}

}  // namespace

void bind_exchange(nb::module_& m) {
  nb::class_<MachineLinks>(m, "MachineLinks")
      .def(nb::init<int, int>(), "machine"_a, "spin_us"_a)
      .def_prop_ro("bell", &MachineLinks::bell)
      .def(
          "set_workers",
          [](MachineLinks& links, Output<std::uint8_t> memory, std::size_t room, const std::vector<int>& machine_of) {
            check_fit(memory, static_cast<int>(machine_of.size()), room);
            links.set_workers(memory.data(), room, machine_of);
          },
          "memory"_a.noconvert(), "room"_a, "machine_of"_a, nb::keep_alive<1, 2>())
      .def("connect", &MachineLinks::connect, "machine"_a, "socket"_a)
      .def("disconnect", &MachineLinks::disconnect, "machine"_a)
      .def("abandon", &MachineLinks::abandon, "attempt"_a)
      .def_prop_ro("message_count", &MachineLinks::message_count)
      .def_prop_ro("send_count", &MachineLinks::send_count);
  nb::class_<Mailboxes>(m, "Mailboxes")
      // The memory is shared with other workers, and read and written in place.
      .def(
          "__init__",
          [](Mailboxes* self, Output<std::uint8_t> memory, int worker_count, std::size_t room, int worker, int spins,
             int bell) {
            check_fit(memory, worker_count, room);
            new (self) Mailboxes(memory.data(), worker_count, room, worker, spins, bell);
          },
          "memory"_a.noconvert(), "worker_count"_a, "room"_a, "worker"_a, "spins"_a, "bell"_a = -1,
          nb::keep_alive<1, 2>())
      // What engines do by themselves; false: the step is abandoned.
      .def("begin_step", &Mailboxes::begin_step, "attempt"_a, "first"_a = true)
      .def(
          "send",
          [](Mailboxes& mail, int worker, nb::bytes message) {
            if (message.size() > mail.room()) throw std::invalid_argument("the message is too long");
            std::memcpy(mail.outgoing(worker), message.c_str(), message.size());
            return unless_abandoned([&] { mail.send(worker, message.size()); });
          },
          "worker"_a, "message"_a)
      .def(
          "receive",
          [](Mailboxes& mail, int worker, std::size_t size) -> std::optional<nb::bytes> {
            const void* message = nullptr;
            if (!unless_abandoned([&] { message = mail.receive(worker, size); })) return std::nullopt;
            return nb::bytes(message, size);
          },
          "worker"_a, "size"_a)
      .def(
          "finish_step",
          [](Mailboxes& mail, unsigned says) -> std::optional<unsigned> {
            unsigned all = 0;
            if (!unless_abandoned([&] { all = mail.finish_step(says); })) return std::nullopt;
            return all;
          },
          "says"_a = 0)
      .def_static("byte_count", &Mailboxes::byte_count, "worker_count"_a, "room"_a)
      .def_static(
          "abandon",
          [](Output<std::uint8_t> memory, std::uint64_t attempt) { Mailboxes::abandon(memory.data(), attempt); },
          "memory"_a.noconvert(), "attempt"_a)
      .def_static(
          "is_waiting",
          [](Input<std::uint8_t> memory, int worker) { return Mailboxes::is_waiting(memory.data(), worker); },
          "memory"_a, "worker"_a)
      .def_static(
          "is_elsewhere",
          [](Input<std::uint8_t> memory, int worker) { return Mailboxes::is_elsewhere(memory.data(), worker); },
          "memory"_a, "worker"_a)
      .def_prop_ro("waited_s", [](const Mailboxes& mail) { return mail.counts().wait_wall; })
      .def_prop_ro("waited_cpu_s", [](const Mailboxes& mail) { return mail.counts().wait_cpu; })
      .def_prop_ro("between_meetings_s", &Mailboxes::between_meetings)
      .def_prop_ro("exchanges", [](const Mailboxes& mail) { return mail.counts().exchanges; })
      .def_prop_ro("sent_bytes", [](const Mailboxes& mail) { return mail.counts().bytes; });
  m.attr("message_bytes") = std::max({Between::most_bytes(), sizeof(BodyState), ghost_message_bytes()});
}

}  // namespace lapjoint::bindings
