// Whether two bodies touch, active or not: the test that a step makes, for any states.
#include <BulletCollision/CollisionDispatch/btCollisionObjectWrapper.h>
#include <BulletCollision/CollisionDispatch/btManifoldResult.h>

#include "bullet_frames.h"
#include "bullet_world.h"

namespace lapjoint {

const BulletWorld::Probe& BulletWorld::probe(int id) {
  const auto found = probes_.find(id);
  if (found != probes_.end()) return found->second;
  btVector3 moments;
  Probe made;
  const double unit = settings_.mass_unit * settings_.length_unit * settings_.length_unit;
  principal_axes(body_columns_.inertia + 9 * id, unit, moments, made.turn);  // as for a body: the same shape
  made.shape = shapes_.acquire(body_columns_.shape_id[id], made.turn);
  return probes_.emplace(id, made).first->second;
}

void BulletWorld::touching(const int* pairs, int count, const double* states, bool* touch) {
  btCollisionObject objects[2];
  btManifoldArray manifolds;
  for (int i = 0; i < count; ++i) {
    for (int side = 0; side < 2; ++side) {
      const int id = pairs[2 * i + side];
      const double* state = states + kStateSize * static_cast<std::size_t>(id);
      const Probe& body = probe(id);
      const btQuaternion turn = quaternion(state + 3) * body.turn;
      objects[side].setCollisionShape(body.shape);
      objects[side].setWorldTransform(btTransform(turn.normalized(), length(state)));
    }
    const btCollisionObjectWrapper a(nullptr, objects[0].getCollisionShape(), &objects[0],
                                     objects[0].getWorldTransform(), -1, -1);
    const btCollisionObjectWrapper b(nullptr, objects[1].getCollisionShape(), &objects[1],
                                     objects[1].getWorldTransform(), -1, -1);
    btCollisionAlgorithm* algorithm = dispatcher_.findAlgorithm(&a, &b, nullptr, BT_CONTACT_POINT_ALGORITHMS);
    btManifoldResult result(&a, &b);
    algorithm->processCollision(&a, &b, world_->getDispatchInfo(), &result);
    manifolds.resize(0);
    algorithm->getAllContactManifolds(manifolds);
    touch[i] = false;
    for (int k = 0; k < manifolds.size(); ++k) touch[i] |= manifolds[k]->getNumContacts() > 0;
    algorithm->~btCollisionAlgorithm();
    dispatcher_.freeCollisionAlgorithm(algorithm);
  }
}

}  // namespace lapjoint
