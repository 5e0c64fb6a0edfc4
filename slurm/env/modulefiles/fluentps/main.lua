-- For Lmod: puts fluentps into the PATH.
--   module use CLONE/slurm/env/modulefiles && module load fluentps
-- Smoke test:
--   fluentps info && fluentps run --local 6 CLONE/configs/examples/first.yaml

help([[
fluentps trains with parameter servers: each MPI rank serves parameters or computes gradients.
  fluentps --help                          the verbs
  srun --mpi=pmix fluentps run CONFIG      train on the ranks of a Slurm job
]])
whatis("Name: fluentps")
whatis("Version: main")
whatis("Category: machine learning")
whatis("Description: a parameter server for HPC clusters")

-- The clone that contains this file. In a copy of this file elsewhere, set this to the folder that contains bin/.
local root = myFileName():gsub("/slurm/env/modulefiles/.*", "")

-- One build at a time: another version of this module is replaced.
family("fluentps")

-- The MPI that the program was built with, if that is a module, too: the program does not start without its libraries, and
-- mpirun must belong to the same MPI. Use the name that `module avail` shows.
-- depends_on("openmpi/4.1.4")

if mode() == "load" and not isFile(pathJoin(root, "bin", "fluentps")) then
   LmodError("there is no " .. pathJoin(root, "bin", "fluentps") .. "; in " .. root .. " type: make build")
end
prepend_path("PATH", pathJoin(root, "bin"))
