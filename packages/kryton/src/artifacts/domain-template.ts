/**
 * The libvirt domain of a machine made from a cloud image, as XML.
 *
 * Every value is escaped. The seed hangs on virtio-scsi because some cloud kernels have no AHCI driver;
 * a display adapter is needed because some BIOS boots loop without one.
 */

/** What a domain is made from. */
export interface DomainTemplate {
  readonly name: string;
  readonly uuid: string;
  readonly memoryMiB: number;
  readonly cpu: number;
  readonly firmware: "efi" | "bios";
  readonly diskPath: string;
  readonly seedPath: string;
  readonly network: string;
}

/** The domain definition. */
export function domainXml(template: DomainTemplate): string {
  const x = escapeXml;
  const firmware = template.firmware === "efi" ? " firmware='efi'" : "";
  return `<domain type='kvm'>
  <name>${x(template.name)}</name>
  <uuid>${x(template.uuid)}</uuid>
  <memory unit='MiB'>${template.memoryMiB}</memory>
  <vcpu>${template.cpu}</vcpu>
  <os${firmware}>
    <type arch='x86_64' machine='q35'>hvm</type>
    <boot dev='hd'/>
  </os>
  <features>
    <acpi/>
    <apic/>
  </features>
  <cpu mode='host-model'/>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='${x(template.diskPath)}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <controller type='scsi' index='0' model='virtio-scsi'/>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/>
      <source file='${x(template.seedPath)}'/>
      <target dev='sda' bus='scsi'/>
      <readonly/>
    </disk>
    <interface type='network'>
      <source network='${x(template.network)}'/>
      <model type='virtio'/>
    </interface>
    <channel type='unix'>
      <target type='virtio' name='org.qemu.guest_agent.0'/>
    </channel>
    <serial type='pty'>
      <target port='0'/>
    </serial>
    <console type='pty'>
      <target type='serial' port='0'/>
    </console>
    <video>
      <model type='vga'/>
    </video>
  </devices>
</domain>
`;
}

function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("'", "&apos;")
    .replaceAll('"', "&quot;");
}
