/* Signal processing for any Linux program: filters and mixers whose inner loops are written for their coefficients at run time, FFT,
 * resampler, reverberation. See synthsignal(3). Link with -lsynthsignal.
 *
 * Samples and coefficients are of 16 bits; what comes out in fixed point is the same, bit for bit, on every machine. Nothing is kept
 * but in what is passed, so all functions are reentrant; what is not const may be used by one thread at a time. */
#ifndef SYNTHSIGNAL_H
#define SYNTHSIGNAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define SSIG_NOTHROW noexcept
#else
#define SSIG_NOTHROW
#endif

/* The inner loop: written for these coefficients where that can be (a processor with AVX2, a system that allows code), or the
 * compiler's. They do the same. */
enum ssig_way { SSIG_SYNTHESIZED, SSIG_COMPILED };

/* A filter of `phases` (1, 2 or 4) samples out for each one in: out[phases * n + p] is the sum of taps[phases * k + p] * in[n - k], divided
 * by 2 to the `shift` (at most 15), rounded and saturated. NULL and EINVAL: no taps, more than 1,024 a phase, no multiple of phases, or
 * absolute values of a phase that add up to more than 65,535. */
typedef struct ssig_filter_state ssig_filter_state;
ssig_filter_state *ssig_filter_new(const int16_t *taps, size_t count, size_t phases, unsigned shift, enum ssig_way way) SSIG_NOTHROW;
void ssig_filter_delete(ssig_filter_state *filter) SSIG_NOTHROW;
/* `count` samples in, `phases` times as many out. */
void ssig_filter(ssig_filter_state *filter, int16_t *out, const int16_t *in, size_t count) SSIG_NOTHROW;
/* 1: its loop was written for it. */
int ssig_filter_is_synthesized(const ssig_filter_state *filter) SSIG_NOTHROW;

/* Slides a pattern over a signal: how alike the last samples are to it. As a filter. */
typedef struct ssig_correlator ssig_correlator;
ssig_correlator *ssig_correlator_new(const int16_t *pattern, size_t count, unsigned shift, enum ssig_way way) SSIG_NOTHROW;
void ssig_correlator_delete(ssig_correlator *correlator) SSIG_NOTHROW;
void ssig_correlate(ssig_correlator *correlator, int16_t *out, const int16_t *in, size_t count) SSIG_NOTHROW;

/* Up to 64 signals added up, each with its gain, divided by 2 to the `shift`, rounded and saturated. As a filter. */
typedef struct ssig_mixer ssig_mixer;
ssig_mixer *ssig_mixer_new(const int16_t *gains, size_t count, unsigned shift, enum ssig_way way) SSIG_NOTHROW;
void ssig_mixer_delete(ssig_mixer *mixer) SSIG_NOTHROW;
/* `inputs`: as many as gains, each of `count` samples. */
void ssig_mix(const ssig_mixer *mixer, int16_t *out, const int16_t *const *inputs, size_t count) SSIG_NOTHROW;

/* The Fourier transform of a power of two of points, 2 to 65,536, in place; NULL and EINVAL: another number. ssig_fft_fixed divides by
 * the number of points. */
typedef struct ssig_fft_roots ssig_fft_roots;
ssig_fft_roots *ssig_fft_new(size_t points) SSIG_NOTHROW;
void ssig_fft_delete(ssig_fft_roots *fft) SSIG_NOTHROW;
void ssig_fft(const ssig_fft_roots *fft, float *re, float *im) SSIG_NOTHROW;
void ssig_fft_fixed(const ssig_fft_roots *fft, int16_t *re, int16_t *im) SSIG_NOTHROW;

/* From one rate to another. NULL and EINVAL: a rate is 0. */
typedef struct ssig_resampler ssig_resampler;
ssig_resampler *ssig_resampler_new(uint32_t from, uint32_t to) SSIG_NOTHROW;
void ssig_resampler_delete(ssig_resampler *resampler) SSIG_NOTHROW;
/* From the next sample on so many samples in for each one out, in units of 2 to the -48. */
void ssig_resampler_step(ssig_resampler *resampler, uint64_t step) SSIG_NOTHROW;
/* Makes up to `room` samples of up to *count; how many were made. *count is how many were used. */
size_t ssig_resample(ssig_resampler *resampler, int16_t *out, size_t room, const int16_t *in, size_t *count) SSIG_NOTHROW;

/* What comes back from the walls of a hall, which are `wider` samples further away than usual. Samples stay below 2 to the 24. NULL and
 * EINVAL: a rate below 1,000 or above 1,000,000, or more than a second wider. */
typedef struct ssig_room ssig_room;
ssig_room *ssig_reverb_new(uint32_t rate, uint32_t wider) SSIG_NOTHROW;
void ssig_reverb_delete(ssig_room *room) SSIG_NOTHROW;
void ssig_reverb(ssig_room *room, int32_t *out, const int32_t *in, size_t count) SSIG_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
