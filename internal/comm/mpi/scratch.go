//go:build mpi

package mpi

import "os"

// scratchVariables are the settings of Open MPI for the folder of files that ranks of a host share: of messages in versions 4
// and 5, and of windows. Other libraries do not know them.
var scratchVariables = []string{
	"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory",
	"OMPI_MCA_osc_sm_backing_directory", "OMPI_MCA_osc_rdma_backing_directory",
}

// useScratch has Open MPI make its files in a folder, except those for which the user has named another one.
func useScratch(dir string) {
	for _, name := range scratchVariables {
		if _, set := os.LookupEnv(name); dir != "" && !set {
			_ = os.Setenv(name, dir) // fails for impossible names only
		}
	}
}
