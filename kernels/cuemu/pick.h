// pick of gpu.cuh for the race check. Where pick is asked for a value outside, it reads x[0] and drops the value, so that no write of
// x[0] can change a result. The check would report such a write, in each kernel that works in place.
#ifdef CUEMU_RACES

namespace cuemu {
inline float pick(const float *x, int at, bool inside) { return inside ? x[at] : 0; }
} // namespace cuemu
#define pick cuemu::pick

#endif
