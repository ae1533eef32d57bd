/** Loaded into each process of the lab, which then ends with its parent. */
process.once('disconnect', () => process.exit());
