#include "sha256.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cfmaps
{
namespace
{
constexpr size_t block_bytes = 64;

constexpr std::array<uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;
constexpr State start = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

uint32_t big_endian(const uint8_t* bytes)
{
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void mix(State& state, const uint8_t* block)
{
    std::array<uint32_t, 64> w;
    for (int i = 0; i < 16; ++i)
        w[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; ++i)
    {
        const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int i = 0; i < 64; ++i)
    {
        const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const State after = {a, b, c, d, e, f, g, h};
    std::transform(state.begin(), state.end(), after.begin(), state.begin(), std::plus<uint32_t>());
}

void mix_all(State& state, const uint8_t* blocks, size_t n_blocks)
{
    for (size_t block = 0; block < n_blocks; ++block)
        mix(state, blocks + block * block_bytes);
}

#if defined(__x86_64__) && defined(__GNUC__)
/// The same with the processor's own instructions, five times as fast: four rounds at a time.
__attribute__((target("sha,sse4.1,ssse3"))) void mix_all_in_hardware(State& state, const uint8_t* blocks,
                                                                     size_t n_blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const auto load = [](const void* memory) { return _mm_loadu_si128(static_cast<const __m128i*>(memory)); };
    const __m128i badc = _mm_shuffle_epi32(load(&state[0]), 0xB1), efgh = _mm_shuffle_epi32(load(&state[4]), 0x1B);
    __m128i abef = _mm_alignr_epi8(badc, efgh, 8), cdgh = _mm_blend_epi16(efgh, badc, 0xF0);
    for (const uint8_t* end = blocks + n_blocks * block_bytes; blocks != end; blocks += block_bytes)
    {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i)
        {
            __m128i& now = w[i % 4];
            const __m128i last = w[(i + 3) % 4];
            if (i < 4)
                now = _mm_shuffle_epi8(load(blocks + 16 * i), swap);
            else
                now = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), _mm_alignr_epi8(last, w[(i + 2) % 4], 4)),
                    last);
            const __m128i sum = _mm_add_epi32(now, load(&round_constants[4 * i]));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_hardware()
{
    unsigned a, b, c, d;
    const bool shuffles = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3);
    return shuffles && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#else
constexpr auto mix_all_in_hardware = mix_all;
bool has_hardware()
{
    return false;
}
#endif

const auto mix_blocks = has_hardware() ? mix_all_in_hardware : mix_all;
}  // namespace

Digest sha256(std::span<const uint8_t> bytes)
{
    State state = start;
    const size_t n_whole = bytes.size() / block_bytes;
    mix_blocks(state, bytes.data(), n_whole);
    // The rest, a single 1 bit, zeros, and the length in bits.
    std::array<uint8_t, 2 * block_bytes> tail{};
    const auto rest = bytes.subspan(n_whole * block_bytes);
    std::copy(rest.begin(), rest.end(), tail.begin());
    tail[rest.size()] = 0x80;
    const size_t n_tail = rest.size() + 9 > block_bytes ? 2 * block_bytes : block_bytes;
    for (size_t i = 0; i < 8; ++i)
        tail[n_tail - 1 - i] = static_cast<uint8_t>(uint64_t{bytes.size()} * 8 >> (8 * i));
    mix_blocks(state, tail.data(), n_tail / block_bytes);
    Digest digest;
    for (size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}
}  // namespace cfmaps
