/** Loaded into each process of the lab: it ends with the process that started it. */
process.once('disconnect', () => process.exit());
