/**
 * Where tests put files that need not survive: in memory when the machine has such a place, so that a test of
 * semantics doesn't pay for flushes. What flushes are worth is tested elsewhere, on a disk. Test code only.
 */
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";

/** A folder to make temporary folders in. */
export const scratchRoot = writable("/dev/shm") ? "/dev/shm" : tmpdir();

function writable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
