/**
 * POSIX tar, as far as Talos writes it: folders, files and links.
 */

/** Bytes of a header, and of what a file's content is filled up to. */
const blockBytes = 512;

/** One entry. */
export interface TarEntry {
  readonly name: string;
  readonly content?: Uint8Array;
  /** Permission bits. Default 0600. */
  readonly mode?: number;
  /** Seconds since the epoch. */
  readonly modified: number;
  readonly isFolder?: boolean;
}

/** The header of an entry. */
export function tarHeader({ name, content, mode = 0o600, modified, isFolder = false }: TarEntry): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;
  header.write(name.slice(0, 100), 0);
  header.write(octal(mode, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content?.length ?? 0, 12), 124);
  header.write(octal(modified, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write(isFolder ? "5" : "0", 156);
  header.write("ustar\0" + "00", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

/** A whole archive. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = entry.content ?? new Uint8Array();
    const rest = (blockBytes - (content.length % blockBytes)) % blockBytes;
    return [tarHeader(entry), content, Buffer.alloc(rest)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}
