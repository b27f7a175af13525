//! What an image says of itself: the OCI image format, and docker's `manifest.json`.

use serde::Deserialize;

use super::Bad;
use super::blobs::{Blobs, Section, check};

/// Indexes within indexes.
const DEPTH_MAX: u32 = 4;
/// Layers that an image may have (docker allows 127).
const LAYERS_MAX: usize = 512;

/// What an image is made of.
pub struct Manifest {
    pub layers: Vec<Section>,
    /// Digests of the layers when they are decompressed.
    pub diffs: Vec<String>,
    pub runs: Runs,
}

/// What to run.
#[derive(Default)]
pub struct Runs {
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub env: Vec<String>,
    pub user: String,
    pub cwd: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct OciManifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: String,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct Configuration {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    config: Option<Process>,
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Process {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    user: Option<String>,
    working_dir: Option<String>,
}

/// Reads the one image that is for this processor; its parts have the digests that they are said to have.
pub fn read(blobs: &Blobs) -> Result<Manifest, Bad> {
    if blobs.has("index.json") {
        return read_oci(blobs);
    }
    if blobs.has("manifest.json") {
        return read_docker(blobs);
    }
    Err("it has neither index.json nor manifest.json".into())
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8], name: &str) -> Result<T, Bad> {
    serde_json::from_slice(text).map_err(|error| format!("{name} is not as it should be: {error}"))
}

fn read_oci(blobs: &Blobs) -> Result<Manifest, Bad> {
    let mut text = blobs.text(&blobs.find("index.json")?, "index.json")?;
    for _ in 0..DEPTH_MAX {
        let index: Index = parse(&text, "its index")?;
        let is_ours = |descriptor: &&Descriptor| {
            let platform = descriptor.platform.as_ref();
            platform.is_none_or(|platform| platform.architecture == "amd64" && platform.os == "linux")
        };
        let chosen = index.manifests.iter().find(is_ours).ok_or("it has nothing for Linux on amd64")?;
        text = blobs.text(&blobs.checked(&chosen.digest, Some(chosen.size))?, &chosen.digest)?;
        if !chosen.media_type.contains("index") && !chosen.media_type.contains("manifest.list") {
            let manifest: OciManifest = parse(&text, "its manifest")?;
            let config = blobs.checked(&manifest.config.digest, Some(manifest.config.size))?;
            few(manifest.layers.len())?;
            let layers = manifest.layers.iter().map(|layer| blobs.checked(&layer.digest, Some(layer.size)));
            let layers = layers.collect::<Result<Vec<_>, Bad>>()?;
            return finish(blobs, &config, layers);
        }
    }
    Err("its indexes lead to each other".into())
}

/// Layers have no digests of their own here: those that the configuration tells are checked when they are read.
fn read_docker(blobs: &Blobs) -> Result<Manifest, Bad> {
    let text = blobs.text(&blobs.find("manifest.json")?, "manifest.json")?;
    let images: Vec<DockerManifest> = parse(&text, "manifest.json")?;
    let [image] = &images[..] else { return Err(format!("it holds {} images: save one", images.len())) };
    let config = blobs.find(&image.config)?;
    // The configuration is called by its digest.
    let digits = image.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
    if digits.len() == 64 {
        check(&config, &format!("sha256:{digits}"))?;
    }
    few(image.layers.len())?;
    let layers = image.layers.iter().map(|layer| blobs.find(layer)).collect::<Result<Vec<_>, Bad>>()?;
    finish(blobs, &config, layers)
}

fn few(layers: usize) -> Result<(), Bad> {
    if layers <= LAYERS_MAX { Ok(()) } else { Err(format!("it has {layers} layers")) }
}

fn finish(blobs: &Blobs, config: &Section, layers: Vec<Section>) -> Result<Manifest, Bad> {
    let text = blobs.text(config, "its configuration")?;
    let config: Configuration = parse(&text, "its configuration")?;
    if !["", "amd64"].contains(&config.architecture.as_str()) || !["", "linux"].contains(&config.os.as_str()) {
        return Err(format!("it is for {} on {}", config.os, config.architecture));
    }
    let diffs = config.rootfs.diff_ids;
    if diffs.len() != layers.len() {
        return Err(format!("it has {} layers and tells the digests of {}", layers.len(), diffs.len()));
    }
    let process = config.config.unwrap_or_default();
    let runs = Runs {
        entrypoint: process.entrypoint.unwrap_or_default(),
        command: process.cmd.unwrap_or_default(),
        env: process.env.unwrap_or_default(),
        user: process.user.unwrap_or_default(),
        cwd: process.working_dir.unwrap_or_default(),
    };
    Ok(Manifest { layers, diffs, runs })
}
