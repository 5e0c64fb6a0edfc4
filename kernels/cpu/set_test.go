package cpu

import (
	"strings"
	"testing"
)

// environment returns a getenv with these pairs of names and values.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestLevelsAreLimitedByTheProcessorAndTheUser(t *testing.T) {
	for _, c := range []struct {
		value string
		want  Level
	}{{"", Processor()}, {"none", Scalar}, {"avx2", min(AVX2, Processor())}, {"AVX512", min(AVX512, Processor())}} {
		if got, err := allowedLevel(environment(LevelVariable, c.value)); err != nil || got != c.want {
			t.Errorf("%q: level %v, error %v, want %v", c.value, got, err, c.want)
		}
	}
	if _, err := allowedLevel(environment(LevelVariable, "sse9")); err == nil ||
		err.Error() != `FLUENTPS_KERNELS_ISA is "sse9", must be none, avx2, avx512` {
		t.Errorf("an unknown level: error %v", err)
	}
}

func TestKernelsBelowTheProcessorAreSaid(t *testing.T) {
	blas := func(core string) session {
		return session{set: Set{Products: "OpenBLAS 0.3.21 " + core}, level: AVX512, products: levelOfCore(core, AVX512),
			variables: []string{"OPENBLAS_CORETYPE"}}
	}
	onednn := session{set: Set{Products: "oneDNN 2.6.3 avx2"}, level: AVX512, products: levelOfISA(7),
		variables: []string{"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}}
	for _, c := range []struct {
		what     string
		s        session
		env      []string
		want     []string
		noReason bool
	}{
		{what: "all instructions", s: blas("SkylakeX"), noReason: true},
		{what: "a core that is newer than the list", s: blas("Diamondrapids"), noReason: true},
		{what: "a core that the user chose", s: blas("Prescott"), env: []string{"OPENBLAS_CORETYPE", "PRESCOTT"},
			want: []string{"(avx512)", "OpenBLAS 0.3.21 Prescott", "OPENBLAS_CORETYPE is PRESCOTT: unset it"}},
		{what: "a library without the kernels", s: blas("Haswell"), want: []string{"OpenBLAS 0.3.21 Haswell: install oneDNN"}},
		{what: "oneDNN limited", s: onednn,
			env: []string{"OPENBLAS_CORETYPE", "HASWELL", "ONEDNN_MAX_CPU_ISA", "AVX2"}, want: []string{"ONEDNN_MAX_CPU_ISA is AVX2: unset it"}},
		{what: "a library that was found but cannot be used",
			s: session{set: Set{Products: "OpenBLAS 0.3.21 SkylakeX"}, level: AVX512, products: AVX512,
				skipped: []string{"libdnnl.so.2: file too short"}},
			want: []string{"found but cannot be used: libdnnl.so.2: file too short"}},
		{what: "all kernels limited", s: session{level: AVX2, products: AVX2}, env: []string{LevelVariable, "avx2"},
			want: []string{"FLUENTPS_KERNELS_ISA is avx2: unset it"}},
	} {
		got := weak(c.s, AVX512, environment(c.env...))
		if c.noReason && got != "" {
			t.Errorf("%s: %q, want nothing", c.what, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", c.what, got, want)
			}
		}
	}
}
