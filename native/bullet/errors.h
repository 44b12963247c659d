// Errors of a world that are about one body, with its number as data: who catches them knows the body's name.
#pragma once

#include <stdexcept>
#include <string>

namespace lapjoint {

// A body that a call names and cannot be about. The text is what is wrong with it: "is not active".
class BodyError : public std::invalid_argument {
 public:
  BodyError(int body_id, const std::string& fault) : std::invalid_argument(fault), body_id_(body_id) {}
  int body_id() const { return body_id_; }

 private:
  int body_id_;
};

// The first body whose state is not finite after a step.
class NotFiniteError : public BodyError {
 public:
  explicit NotFiniteError(int body_id) : BodyError(body_id, "has a state that is not finite after the step") {}
};

}  // namespace lapjoint
