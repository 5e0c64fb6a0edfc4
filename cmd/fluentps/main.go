// Command fluentps is a parameter server for training under mpirun or srun, or with ranks as goroutines of one process.
package main

import "fluentps"

func main() { fluentps.Main() }
