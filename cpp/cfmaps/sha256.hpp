#pragma once
// SHA-256 (FIPS 180-4), so that a search can check a page of a file without asking Python.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cfmaps
{
using Digest = std::array<uint8_t, 32>;

Digest sha256(std::span<const uint8_t> bytes);
}  // namespace cfmaps
