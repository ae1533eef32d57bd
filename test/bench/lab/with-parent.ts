/** Ends a process of the lab with its parent. */
process.once('disconnect', () => process.exit());
